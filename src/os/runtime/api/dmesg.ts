import { serverStream } from '../../../rpc/server/method.ts'
import type { Kernel } from '../../kernel.ts'
import { kernelLines } from '../kernel-lines.ts'

/** The kernel's log. */
export const dmesg = (kernel: Pick<Kernel, 'kmsg' | 'time'>) =>
  serverStream('machine.MachineService/Dmesg', ['os:admin', 'os:operator', 'os:reader'], async function* ({ follow, tail }, { signal }) {
    for await (const bytes of kernelLines(kernel, { follow, tail, signal })) yield { bytes }
  })
