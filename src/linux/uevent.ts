/** What the kernel tells of devices that come, change and go (Documentation/ABI/stable/sysfs-uevent). */
import { netlinkProtocol, watchGroups } from './netlink-socket.ts'

const kernelGroup = 1

/** Yields when a device of this subsystem came, changed or went, and when that may have been missed. */
export async function* watchDevices(subsystem: string, signal?: AbortSignal): AsyncGenerator<void> {
  const said = Buffer.from(`SUBSYSTEM=${subsystem}\0`)
  for await (const bytes of watchGroups(netlinkProtocol.uevent, [kernelGroup], { signal }))
    if (!bytes || Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).includes(said)) yield
}
