import { readers, unary } from '../../../rpc/server/method.ts'
import { parseMeminfo } from '../../../wire/proc/memory.ts'
import type { Kernel } from '../../kernel.ts'

/** How memory is used, in kB. */
export const memory = ({ files }: Pick<Kernel, 'files'>) =>
  unary('machine.MachineService/Memory', readers, () => ({
    messages: [{ meminfo: parseMeminfo(files.readText('/proc/meminfo')) }],
  }))
