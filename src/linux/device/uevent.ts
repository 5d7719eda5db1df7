/** What the kernel tells of devices that come, change and go (Documentation/ABI/stable/sysfs-uevent). */
import { readUevent } from '../../wire/uevent.ts'
import { netlinkProtocol, watchGroups } from '../net/netlink-socket.ts'

/** Who tells: the kernel when something happens, udevd when it has given names for it. */
const groups = { kernel: 1, udevd: 2 } as const

/**
 * Yields the names of devices of this subsystem that came, changed or went; undefined when some may have been missed.
 * What udevd tells is read as far as that something happened.
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
