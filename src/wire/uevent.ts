/** Messages about devices, from the kernel and from udevd (Documentation/ABI/stable/sysfs-uevent). */

const most = 1024

/** The device names in a message of a subsystem; empty for a message of another subsystem. */
export function readUevent(message: Uint8Array, subsystem: string): string[] {
  const words = Buffer.from(message.buffer, message.byteOffset, message.byteLength).toString('latin1').split('\0', most)
  if (!words.includes(`SUBSYSTEM=${subsystem}`)) return []
  return words.filter((word) => word.startsWith('DEVPATH=')).map((word) => word.slice(word.lastIndexOf('/') + 1))
}
