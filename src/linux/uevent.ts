/** What the kernel tells of devices that come, change and go (Documentation/ABI/stable/sysfs-uevent). */
import { netlinkProtocol, watchGroups } from './netlink-socket.ts'

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
  const said = `SUBSYSTEM=${subsystem}`
  for await (const bytes of watchGroups(netlinkProtocol.uevent, [groups[teller]], { signal })) {
    const words = bytes && Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1').split('\0')
    if (!words) yield undefined
    else if (words.includes(said))
      yield words.filter((word) => word.startsWith('DEVPATH=')).map((word) => word.slice(word.lastIndexOf('/') + 1))
  }
}
