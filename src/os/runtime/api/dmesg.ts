import { readers, serverStream } from '../../../rpc/server/method.ts'
import { callerPlace, Places } from '../../../rpc/server/places.ts'
import type { Kernel } from '../../kernel.ts'
import { kernelLines } from '../kernel-lines.ts'

/** Each reader gets the log formatted for itself, so the number of readers is limited. */
const places = new Places('readers of the kernel log', { each: 32, all: 256 })

/** The kernel's log. */
export const dmesg = (kernel: Pick<Kernel, 'kmsg' | 'time'>) =>
  serverStream('machine.MachineService/Dmesg', readers, async function* ({ follow, tail }, context) {
    using place = places.hold(callerPlace(context), context.signal)
    for await (const bytes of kernelLines(kernel, { follow, tail, signal: place.signal })) yield { bytes }
    place.signal.throwIfAborted()
  })
