import { serverStream } from '../../../rpc/server/method.ts'
import { callerPlace, Places } from '../../../rpc/server/places.ts'
import type { Kernel } from '../../kernel.ts'
import { kernelLines } from '../kernel-lines.ts'

/** Each reader has the log made into lines for itself. */
const readers = new Places('readers of the kernel log', { each: 32, all: 256 })

/** The kernel's log. */
export const dmesg = (kernel: Pick<Kernel, 'kmsg' | 'time'>) =>
  serverStream('machine.MachineService/Dmesg', ['os:admin', 'os:operator', 'os:reader'], async function* ({ follow, tail }, context) {
    using place = readers.hold(callerPlace(context), context.signal)
    for await (const bytes of kernelLines(kernel, { follow, tail, signal: place.signal })) yield { bytes }
    place.signal.throwIfAborted()
  })
