import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'

/** What the kernel was started with. */
export const KernelCmdline = defineResource({
  type: 'KernelCmdlines.runtime.talos.dev',
  namespace: 'runtime',
  displayType: 'KernelCmdline',
  aliases: ['cmdline'],
  columns: { Cmdline: '{.cmdline}' },
  spec: v.object({ cmdline: v.string() }),
})
