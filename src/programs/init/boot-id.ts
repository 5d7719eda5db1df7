import * as files from '../../linux/fs/files.ts'
import * as mount from '../../linux/fs/mount.ts'
import { bootIdPath } from '../../os/runtime/boot-id.ts'

/** Where a container's own boot id lies, in memory. */
const ownBootId = '/run/boot-id'

/**
 * Gives a container a new boot id for each start. The kernel's belongs to the host and does not change, so clients that wait
 * for a reboot (talosctl, Kubernetes) would wait forever. Throws where the host forbids mounts over /proc.
 */
export async function giveBootId(): Promise<void> {
  await files.writeAtomic(ownBootId, `${crypto.randomUUID()}\n`, { mode: 0o444 })
  mount.bind(ownBootId, bootIdPath, { flags: ['ro'] })
}
