/** Mounts volumes by type, and unmounts them. */
import type { SpecOf } from '../../../cosi/resource.ts'
import type { MountFlag } from '../../../linux/fs/mount.ts'
import type { Kernel } from '../../kernel.ts'
import { probeDevice } from '../device.ts'
import type { MountRequest } from '../resources/mount-request.ts'
import type { VolumeStatus } from '../resources/volume-status.ts'

type Request = SpecOf<typeof MountRequest>
type Volume = SpecOf<typeof VolumeStatus>
type MountKernel = Pick<Kernel, 'files' | 'mount' | 'block' | 'selinux'>

/** A mounted volume. */
export interface Mounted {
  source: string
  target: string
  filesystem: string
  flags: readonly MountFlag[]
  undo(): unknown
}

/** mount(2) flags of a request. */
export function flagsOf({ readOnly, secure, disableAccessTime }: Request): MountFlag[] {
  const flags: [boolean | undefined, MountFlag[]][] = [
    [readOnly, ['ro']],
    [secure, ['nosuid', 'nodev']],
    [disableAccessTime, ['noatime']],
  ]
  return flags.flatMap(([set, names]) => (set ? names : []))
}

/** A mount whose disk was removed and came back as another device: the old one answers with errors only. */
export function isReplaced({ source, filesystem }: Mounted, { phase, mountLocation }: Volume): boolean {
  return phase === 'ready' && mountLocation !== undefined && mountLocation !== source && filesystem !== 'swapi'
}

/** Where a volume is mounted. */
export interface MountPlace {
  /** The mount point of its parent volume. */
  readonly parent: string
  /** Its disk came back while users still hold the old mount: XFS then knows its UUID already. */
  readonly returned?: boolean
}

/** Mounts a volume. */
export async function mountVolume(kernel: MountKernel, volume: Volume, request: Request, place: MountPlace): Promise<Mounted> {
  const { parent, returned = false } = place
  const path = volume.mountSpec?.targetPath ?? ''
  const target = path.startsWith('/') || path === '' ? path : `${parent}/${path}`
  switch (volume.type) {
    case 'directory':
      return folder(kernel, volume, target)
    case 'symlink':
      return link(kernel, volume, target)
    case 'overlay':
      return overlay(kernel, target, parent)
    case 'external':
      return plain(kernel, volume, request, { source: volume.mountSpec?.parameters?.[0]?.string ?? '', target, type: 'virtiofs' })
    default:
      if (volume.filesystem === 'swapi') return swap(kernel, volume)
      return device(kernel, volume, request, target, returned)
  }
}

const nothingToUndo = () => {}

function folder({ files }: MountKernel, { mountSpec }: Volume, target: string): Mounted {
  const { fileMode: mode = 0, uid, gid } = mountSpec ?? {}
  files.mkdirAll(target, { mode, uid, gid })
  return { source: '', target, filesystem: 'none', flags: [], undo: nothingToUndo }
}

function link({ files }: MountKernel, { symlink }: Volume, target: string): Mounted {
  const to = symlink?.symlinkTargetPath ?? ''
  const there = files.lstatIfThere(target)
  // An empty directory of the same name is replaced; a directory with content is kept and causes an error.
  if (there?.isDirectory() && symlink?.force) files.removeFolder(target)
  files.symlink(to, target)
  return { source: to, target, filesystem: 'none', flags: [], undo: nothingToUndo }
}

/** Mounts an overlay over a directory of the image; what is written goes below `parent`. */
export function mountOverlay({ files, mount }: Pick<Kernel, 'files' | 'mount'>, target: string, parent: string): void {
  if (!files.exists(target)) throw new Error(`mount overlay on "${target}": the image has no such directory`)
  const base = `${parent}/system/overlays/${target.slice(1).replaceAll('/', '-')}`
  const [upper, work] = [`${base}-diff`, `${base}-workdir`]
  for (const path of [upper, work]) files.mkdirAll(path, { mode: 0o755 })
  mount.mount({ source: 'overlay', target, type: 'overlay', data: `lowerdir=${target},upperdir=${upper},workdir=${work}` })
}

function overlay(kernel: MountKernel, target: string, parent: string): Mounted {
  mountOverlay(kernel, target, parent)
  return { source: 'overlay', target, filesystem: 'overlay', flags: [], undo: () => kernel.mount.umountTree(target, { detach: false }) }
}

async function device(kernel: MountKernel, volume: Volume, request: Request, target: string, returned: boolean): Promise<Mounted> {
  const source = volume.mountLocation ?? ''
  const type = volume.filesystem ?? ''
  if (type === '' || type === 'none') throw new Error(`mount "${source}" on "${target}": it has no mountable file system`)
  const mounted = plain(kernel, volume, request, { source, target, type, options: returned && type === 'xfs' ? ['nouuid'] : [] })
  if (type !== 'xfs' || request.readOnly) return mounted
  try {
    kernel.block.growXfs(target, (await probeDevice(kernel.block, source)).size)
  } catch (error) {
    mounted.undo()
    throw error
  }
  return mounted
}

function plain(
  { files, mount, selinux }: MountKernel,
  { mountSpec }: Volume,
  request: Request,
  { source, target, type, options = [] }: { source: string; target: string; type: string; options?: readonly string[] },
): Mounted {
  const flags = flagsOf(request)
  files.mkdirAll(target)
  // An earlier attempt may have failed after mount(2) without unmounting: a second mount would hide the first.
  if (mount.mountAt(target)?.source === source) mount.remount(target, flags)
  else mount.mount({ source, target, type, flags, data: [...(mountSpec?.projectQuotaSupport ? ['prjquota'] : []), ...options].join() })
  const undo = () => mount.umountTree(target, { detach: false })
  const { fileMode, uid, gid, selinuxLabel } = mountSpec ?? {}
  try {
    if (!request.readOnly && selinuxLabel) selinux.labelTree(target, selinuxLabel)
    if (!request.readOnly && fileMode !== undefined) files.chmod(target, fileMode)
    if (!request.readOnly && uid !== undefined) files.chown(target, uid, gid ?? uid)
  } catch (error) {
    undo()
    throw error
  }
  return { source, target, filesystem: type, flags, undo }
}

function swap({ block }: MountKernel, { mountLocation: source = '' }: Volume): Mounted {
  block.swapOn(source)
  return { source, target: '', filesystem: 'swapi', flags: [], undo: () => block.swapOff(source) }
}
