import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'

/** The kernel's command line. */
export const KernelCmdline = defineResource({
  type: 'KernelCmdlines.runtime.talos.dev',
  namespace: 'runtime',
  displayType: 'KernelCmdline',
  aliases: ['cmdline'],
  columns: { Cmdline: '{.cmdline}' },
  spec: v.object({ cmdline: v.string() }),
})
