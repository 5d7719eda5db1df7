/** A configuration on a separate disk: a file system labelled `metal-iso` that holds `config.yaml`. */
import type { Store } from '../../../cosi/store.ts'
import { DiscoveredVolume } from '../../block/resources/discovered-volume.ts'
import type { Kernel } from '../../kernel.ts'
import type { Look } from './source.ts'

/** The label of the file system. */
export const diskLabel = 'metal-iso'

const place = '/run/config-disk'
const byLabel = `/dev/disk/by-label/${diskLabel}`
/** Tried in this order where probing did not find the type. */
const fileSystems = ['iso9660', 'vfat', 'ext4']

interface Dependencies {
  files: Pick<Kernel['files'], 'exists' | 'readTextIfThere' | 'mkdirAll'>
  mount: Pick<Kernel['mount'], 'mount' | 'umount'>
}

/** Reads it as soon as the disk is there. Throws a one-line error when it is not there in time, or holds no configuration. */
export async function readConfigDisk({ files, mount }: Dependencies, store: Store, { signal, log }: Look): Promise<string> {
  const found = await disk(files, store, signal)
  if (!found) throw new Error(`read configuration disk: there is no file system labelled "${diskLabel}"`)
  log.info('reading machine configuration from a disk', { device: found.device })
  files.mkdirAll(place, { mode: 0o700 })
  mountOne(mount, found)
  try {
    const text = files.readTextIfThere(`${place}/config.yaml`)
    if (text === undefined) throw new Error(`read configuration disk "${found.device}": it holds no config.yaml`)
    return text
  } finally {
    mount.umount(place)
  }
}

interface Disk {
  readonly device: string
  readonly types: readonly string[]
}

function mountOne(mount: Dependencies['mount'], disk: Disk): void {
  let last: unknown
  for (const type of disk.types)
    try {
      mount.mount({ source: disk.device, target: place, type, flags: ['ro', 'nosuid', 'nodev', 'noexec'] })
      return
    } catch (error) {
      last = error
    }
  throw last
}

async function disk(files: Pick<Kernel['files'], 'exists'>, store: Store, signal: AbortSignal): Promise<Disk | undefined> {
  const present = (): Disk | undefined => {
    const volume = store.list(DiscoveredVolume).find(({ spec }) => spec.label === diskLabel)?.spec
    if (volume) return { device: volume.dev_path, types: volume.name ? [volume.name] : fileSystems }
    return files.exists(byLabel) ? { device: byLabel, types: fileSystems } : undefined
  }
  const found = present()
  if (found || signal.aborted) return found
  const { promise, resolve } = Promise.withResolvers<void>()
  const stop = store.subscribe(DiscoveredVolume, () => present() && resolve())
  signal.addEventListener('abort', () => resolve(), { once: true })
  await promise
  stop()
  return present()
}
