import * as files from '../../linux/fs/files.ts'
import * as mount from '../../linux/fs/mount.ts'
import { bootIdPath } from '../../os/runtime/boot-id.ts'

/** Where a container's own boot id lies, in memory. */
const ownBootId = '/run/boot-id'

/** A procfs without anything mounted over it, which the kernel demands before a user namespace may mount one. */
const untouchedProc = '/system/proc'

/**
 * Gives a container a new boot id for each start. The kernel's belongs to the host and does not change, so clients that wait
 * for a reboot (talosctl, Kubernetes) would wait forever. Throws where the host forbids mounts over /proc. Pods in user namespaces
 * have their /proc only while the node has one that nothing covers (mount_too_revealing in the kernel's fs/namespace.c).
 */
export async function giveBootId(): Promise<void> {
  await files.writeAtomic(ownBootId, `${crypto.randomUUID()}\n`, { mode: 0o444 })
  files.mkdirAll(untouchedProc, { mode: 0o700 })
  mount.mount({ source: 'proc', target: untouchedProc, type: 'proc', flags: ['nosuid', 'nodev', 'noexec'] })
  mount.bind(ownBootId, bootIdPath, { flags: ['ro'] })
}
