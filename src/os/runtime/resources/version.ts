import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'

/** The version of the system. */
export const Version = defineResource({
  type: 'Versions.runtime.talos.dev',
  namespace: 'runtime',
  displayType: 'Version',
  columns: { Name: '{.name}', Version: '{.version}' },
  spec: v.object({ name: v.string(), version: v.string() }),
})
