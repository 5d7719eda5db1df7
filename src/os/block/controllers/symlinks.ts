import { type Controller, defineController, exclusive, weak } from '../../../cosi/controller.ts'
import { failedWith } from '../../../wire/errno.ts'
import type { Kernel } from '../../kernel.ts'
import { BlockDevice } from '../resources/block-device.ts'
import { BlockSymlink } from '../resources/block-symlink.ts'

const folder = '/dev/disk'
const interval = 60_000

/** Publishes the persistent device names below /dev/disk, as created by udevd. */
export const observeSymlinks = ({
  files,
  uevent,
}: {
  files: Pick<Kernel['files'], 'list' | 'readlink'>
  uevent: Kernel['uevent']
}): Controller =>
  defineController({
    name: 'block.SymlinksController',
    effects: 'none',
    inputs: { device: weak(BlockDevice) },
    outputs: { symlink: exclusive(BlockSymlink) },
    reconcile({ symlink, background, wakeIn }) {
      const found = new Map<string, string[]>()
      for (const kind of listed(files, folder))
        for (const name of listed(files, `${folder}/${kind}`)) {
          const path = `${folder}/${kind}/${name}`
          const device = target(files, path)
          if (device) found.set(device, [...(found.get(device) ?? []), path])
        }
      for (const [device, paths] of found) symlink.put(device, { paths })
      background('follow names', async (signal, wake) => {
        for await (const _ of uevent.watchDevices('block', { teller: 'udevd', signal })) wake()
      })
      wakeIn(interval)
    },
  })

/** The entries of a directory. udevd removes a directory together with its last link. */
function listed(files: Pick<Kernel['files'], 'list'>, path: string): string[] {
  try {
    return files.list(path)
  } catch (error) {
    if (failedWith(error, 'ENOENT')) return []
    throw error
  }
}

/** The device a link points to; undefined if the link was removed meanwhile. */
function target(files: Pick<Kernel['files'], 'readlink'>, path: string): string | undefined {
  try {
    return files.readlink(path).split('/').at(-1)
  } catch {
    return undefined
  }
}
