import { type Controller, defineController, exclusive } from '../../../cosi/controller.ts'
import type { Kernel } from '../../kernel.ts'
import { KernelCmdline } from '../resources/kernel-cmdline.ts'

/** The command line that the kernel was started with; a container has none, its host's is none of its business. */
export const observeKernelCmdline = ({ files }: { files: Pick<Kernel['files'], 'readText'> }): Controller =>
  defineController({
    name: 'runtime.KernelCmdlineController',
    inputs: {},
    outputs: { status: exclusive(KernelCmdline) },
    reconcile({ status }) {
      status.put('cmdline', { cmdline: files.readText('/proc/cmdline').trim() })
    },
  })
