import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'

/** The boot loader entry the machine was started from. */
export const BootedEntry = defineResource({
  type: 'BootedEntries.talos.dev',
  namespace: 'runtime',
  displayType: 'BootedEntry',
  columns: { 'Booted Entry': '{.bootedEntry}' },
  spec: v.object({ bootedEntry: v.optional(v.string()) }),
})
