/** How a volume is mounted, by its kind, and how that is undone. */
import type { SpecOf } from '../../../cosi/resource.ts'
import type { MountFlag } from '../../../linux/fs/mount.ts'
import type { Kernel } from '../../kernel.ts'
import { probeDevice } from '../device.ts'
import type { MountRequest } from '../resources/mount-request.ts'
import type { VolumeStatus } from '../resources/volume-status.ts'

type Request = SpecOf<typeof MountRequest>
type Volume = SpecOf<typeof VolumeStatus>
type Doors = Pick<Kernel, 'files' | 'mount' | 'block'>

/** A volume in its place. */
export interface Mounted {
  source: string
  target: string
  filesystem: string
  flags: readonly MountFlag[]
  undo(): unknown
}

/** Flags of mount(2) for a request. */
export function flagsOf({ readOnly, secure, disableAccessTime }: Request): MountFlag[] {
  const flags: [boolean | undefined, MountFlag[]][] = [
    [readOnly, ['ro']],
    [secure, ['nosuid', 'nodev']],
    [disableAccessTime, ['noatime']],
  ]
  return flags.flatMap(([set, names]) => (set ? names : []))
}

/** Mounts a volume; `parent` is where the volume it lies on is mounted. */
export async function mountVolume(doors: Doors, volume: Volume, request: Request, parent: string): Promise<Mounted> {
  const path = volume.mountSpec?.targetPath ?? ''
  const target = path.startsWith('/') || path === '' ? path : `${parent}/${path}`
  switch (volume.type) {
    case 'directory':
      return folder(doors, volume, target)
    case 'symlink':
      return link(doors, volume, target)
    case 'overlay':
      return overlay(doors, target, parent)
    case 'external':
      return plain(doors, volume, request, { source: volume.mountSpec?.parameters?.[0]?.string ?? '', target, type: 'virtiofs' })
    default:
      if (volume.filesystem === 'swapi') return swap(doors, volume)
      return device(doors, volume, request, target)
  }
}

const nothingToUndo = () => {}

function folder({ files }: Doors, { mountSpec }: Volume, target: string): Mounted {
  const { fileMode: mode = 0, uid, gid } = mountSpec ?? {}
  files.mkdirAll(target, { mode, uid, gid })
  return { source: '', target, filesystem: 'none', flags: [], undo: nothingToUndo }
}

function link({ files }: Doors, { symlink }: Volume, target: string): Mounted {
  const to = symlink?.symlinkTargetPath ?? ''
  const there = files.lstatIfThere(target)
  // An empty folder of the same name gives way; what holds something stays, and is told.
  if (there?.isDirectory() && symlink?.force) files.removeFolder(target)
  files.symlink(to, target)
  return { source: to, target, filesystem: 'none', flags: [], undo: nothingToUndo }
}

function overlay({ files, mount }: Doors, target: string, parent: string): Mounted {
  if (!files.exists(target)) throw new Error(`mount overlay on "${target}": the image has no such folder`)
  const base = `${parent}/system/overlays/${target.slice(1).replaceAll('/', '-')}`
  const [upper, work] = [`${base}-diff`, `${base}-workdir`]
  for (const path of [upper, work]) files.mkdirAll(path, { mode: 0o755 })
  mount.mount({ source: 'overlay', target, type: 'overlay', data: `lowerdir=${target},upperdir=${upper},workdir=${work}` })
  return { source: 'overlay', target, filesystem: 'overlay', flags: [], undo: () => mount.umountTree(target, { detach: false }) }
}

async function device(doors: Doors, volume: Volume, request: Request, target: string): Promise<Mounted> {
  const source = volume.mountLocation ?? ''
  const type = volume.filesystem ?? ''
  if (type === '' || type === 'none') throw new Error(`mount "${source}" on "${target}": it holds no file system that can be mounted`)
  const mounted = plain(doors, volume, request, { source, target, type })
  if (type !== 'xfs' || request.readOnly) return mounted
  try {
    doors.block.growXfs(target, (await probeDevice(doors.block, source)).size)
  } catch (error) {
    mounted.undo()
    throw error
  }
  return mounted
}

function plain(
  { files, mount }: Doors,
  { mountSpec }: Volume,
  request: Request,
  { source, target, type }: { source: string; target: string; type: string },
): Mounted {
  const flags = flagsOf(request)
  files.mkdirAll(target)
  // A try that broke off behind the mount, and could not undo it, is gone on with: a second mount would lie over the first.
  if (mount.mountAt(target)?.source === source) mount.remount(target, flags)
  else mount.mount({ source, target, type, flags, data: mountSpec?.projectQuotaSupport ? 'prjquota' : '' })
  const undo = () => mount.umountTree(target, { detach: false })
  const { fileMode, uid, gid } = mountSpec ?? {}
  try {
    if (!request.readOnly && fileMode !== undefined) files.chmod(target, fileMode)
    if (!request.readOnly && uid !== undefined) files.chown(target, uid, gid ?? uid)
  } catch (error) {
    undo()
    throw error
  }
  return { source, target, filesystem: type, flags, undo }
}

function swap({ block }: Doors, { mountLocation: source = '' }: Volume): Mounted {
  block.swapOn(source)
  return { source, target: '', filesystem: 'swapi', flags: [], undo: () => block.swapOff(source) }
}
