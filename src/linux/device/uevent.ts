/** Kernel events of devices that are added, changed or removed (Documentation/ABI/stable/sysfs-uevent). */
import { readUevent } from '../../wire/uevent.ts'
import { netlinkProtocol, watchGroups } from '../net/netlink-socket.ts'

/** The source of events: the kernel at once, or udevd after it has processed its rules. */
const groups = { kernel: 1, udevd: 2 } as const

/**
 * Yields the names of devices of a subsystem that were added, changed or removed; undefined when events may have been lost.
 * Messages of udevd are only read as far as needed to know that something happened.
 */
export async function* watchDevices(
  subsystem: string,
  { teller = 'kernel', signal }: { teller?: keyof typeof groups; signal?: AbortSignal } = {},
): AsyncGenerator<string[] | undefined> {
  for await (const bytes of watchGroups(netlinkProtocol.uevent, [groups[teller]], { signal })) {
    const names = bytes && readUevent(bytes, subsystem)
    if (names === undefined || names.length > 0) yield names
  }
}
