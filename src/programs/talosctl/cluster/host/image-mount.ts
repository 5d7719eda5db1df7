import { mkdirSync, statSync } from 'node:fs'
import { type AttachedLoop, attachLoop } from '../../../../linux/block/loop.ts'
import { bind, mount, mountAt } from '../../../../linux/fs/mount.ts'
import { messageOf } from '../../../../wire/error-message.ts'
import type { Journal } from '../../../node-supervisor/journal.ts'
import { UsageError } from '../../failure.ts'

/** Mounts the root file system read-only, once for all nodes of a cluster: an image, whose loop device goes with the mount, or an unpacked folder. */
export function mountImage(image: string, target: string, journal: Journal): void {
  if (mountAt(target)) return
  journal.write({ kind: 'directory', path: target })
  mkdirSync(target, { recursive: true, mode: 0o755 })
  if (statSync(image).isDirectory()) {
    journal.write({ kind: 'mount', target })
    bind(image, target, { flags: ['ro', 'nodev'] })
    return
  }
  // Autoclear: should this process die before the mount, the device is free again with its last open file.
  journal.write({ kind: 'loop', backing: image })
  const loop = attach(image)
  try {
    journal.write({ kind: 'loop', backing: image, device: loop.device })
    journal.write({ kind: 'mount', target })
    mount({ source: loop.device, target, type: 'squashfs', flags: ['ro', 'nodev'] })
  } finally {
    loop.release()
  }
}

function attach(image: string): AttachedLoop {
  try {
    return attachLoop(image, { readOnly: true, autoclear: true })
  } catch (error) {
    const reason = messageOf(error)
    throw new UsageError(
      `no loop device is available for the nodes' root file system: ${reason}: free one ("losetup --list" shows their users) and try again`,
    )
  }
}
