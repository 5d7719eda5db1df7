import { type Controller, defineController, exclusive, strong } from '../../../cosi/controller.ts'
import type { Logger } from '../../../cosi/log.ts'
import type { SpecOf } from '../../../cosi/resource.ts'
import { messageOf } from '../../../wire/error-message.ts'
import type { Machine } from '../../area.ts'
import type { Kernel } from '../../kernel.ts'
import { fileSystemName } from '../resources/file-system.ts'
import { MountRequest } from '../resources/mount-request.ts'
import { MountStatus } from '../resources/mount-status.ts'
import { VolumeLifecycle } from '../resources/volume-lifecycle.ts'
import { VolumeStatus } from '../resources/volume-status.ts'
import { flagsOf, isReplaced, type Mounted, type MountPlace, mountVolume } from '../volumes/mounts.ts'
import { isDamaged, repairXfs } from '../volumes/repair.ts'

type Request = SpecOf<typeof MountRequest>
type Volume = SpecOf<typeof VolumeStatus>

const retryInterval = 5_000

/**
 * Mounts requested volumes, parents first, while volumes are in use. When a request is removed or all volumes are released, it
 * unmounts in reverse order before the requester's finalizer is removed.
 */
export const mountVolumes = (
  machine: Pick<Machine, 'spawn'> & { kernel: Pick<Kernel, 'files' | 'mount' | 'block' | 'selinux'> },
): Controller => {
  const { kernel } = machine
  /** In mount order. */
  const mounted = new Map<string, Mounted>()
  const reported = new Map<string, string>()
  /** Volumes with an attempted repair, so that an unsuccessful one is not repeated every few seconds. */
  const repaired = new Set<string>()
  /** Volumes whose disk came back. */
  const returned = new Set<string>()
  const mount = async (id: string, volume: Volume, request: Request, place: MountPlace, log: Logger): Promise<Mounted> => {
    try {
      return await mountVolume(kernel, volume, request, place)
    } catch (error) {
      if (volume.filesystem !== 'xfs' || request.readOnly || repaired.has(id) || !isDamaged(error)) throw error
      repaired.add(id)
      const device = volume.mountLocation ?? ''
      log.warn('file system damaged, repairing', { volume: id, device, error: messageOf(error) })
      await repairXfs(machine, id, device, log)
    }
    const made = await mountVolume(kernel, volume, request, place)
    repaired.delete(id)
    return made
  }
  return defineController({
    name: 'block.MountController',
    inputs: { request: strong(MountRequest), volume: strong(VolumeStatus), lifecycle: strong(VolumeLifecycle) },
    outputs: { status: exclusive(MountStatus) },
    async reconcile({ request, volume, lifecycle, status, log, wakeIn }) {
      const requests = new Map((lifecycle.list().length > 0 ? request.list() : []).map(({ metadata, spec }) => [metadata.id, spec]))
      undo(mounted, (id) => requests.has(id) && volume.get(id) !== undefined, requests, log)
      for (const [id, spec] of ordered(requests)) {
        const wanted = volume.get(id)?.spec
        if (wanted && leave(kernel, mounted, id, wanted, requests, log)) returned.add(id)
        const parent = mounted.get(spec.parentID)
        if (!mounted.has(id) && wanted?.phase === 'ready' && (!spec.parentID || parent)) {
          try {
            const made = await mount(id, wanted, spec, { parent: parent?.target ?? '', returned: returned.has(id) }, log)
            mounted.set(id, made)
            // Directories are numerous and not worth an info message.
            log[made.filesystem === 'none' ? 'debug' : 'info']('volume mounted', { volume: id, target: made.target })
            reported.delete(id)
          } catch (error) {
            const message = messageOf(error)
            if (reported.get(id) !== message) log.error('mount volume failed', { volume: id, error: message })
            reported.set(id, message)
            wakeIn(retryInterval)
          }
        }
        const there = mounted.get(id)
        if (!there) continue
        follow(kernel, there, spec)
        const { source, target, filesystem } = there
        status.put(id, {
          spec,
          source,
          target,
          filesystem: fileSystemName(filesystem),
          ...(wanted?.encryptionProvider && { encryptionProvider: wanted.encryptionProvider }),
          readOnly: spec.readOnly,
          projectQuotaSupport: wanted?.mountSpec?.projectQuotaSupport ?? false,
          detached: false,
        })
      }
    },
  })
}

/** Unmounts, in reverse mount order, every volume that is no longer requested or whose parent is not. Throws EBUSY, which makes the runtime retry. */
function undo(mounted: Map<string, Mounted>, stays: (id: string) => boolean, requests: ReadonlyMap<string, Request>, log: Logger): void {
  const going = new Set([...mounted.keys()].filter((id) => !stays(id)))
  for (const id of mounted.keys()) if (going.has(requests.get(id)?.parentID ?? '')) going.add(id)
  for (const [id, { filesystem, undo }] of [...mounted].reverse()) {
    if (!going.has(id)) continue
    undo()
    mounted.delete(id)
    log[filesystem === 'none' ? 'debug' : 'info']('volume unmounted', { volume: id })
  }
}

/**
 * Takes the mount of a removed disk away when the disk is back, so that it can be mounted again. Users that are in the old mount
 * keep its errors until they restart. Volumes that others lie on stay: only a restart of the machine brings those back.
 */
function leave(
  { mount }: Pick<Kernel, 'mount'>,
  mounted: Map<string, Mounted>,
  id: string,
  wanted: Volume,
  requests: ReadonlyMap<string, Request>,
  log: Logger,
): boolean {
  const there = mounted.get(id)
  if (!there || !isReplaced(there, wanted) || [...requests.values()].some(({ parentID }) => parentID === id)) return false
  mount.umountTree(there.target, { detach: true })
  mounted.delete(id)
  log.warn('disk of a volume is back, mounting it again', { volume: id, before: there.source, device: wanted.mountLocation })
  return true
}

/** Remounts a volume when the flags of its request changed. */
function follow({ mount }: Pick<Kernel, 'mount'>, there: Mounted, spec: Request): void {
  const flags = flagsOf(spec)
  if (there.filesystem === 'none' || there.filesystem === 'overlay' || there.target === '' || flags.join() === there.flags.join()) return
  mount.remount(there.target, flags)
  there.flags = flags
}

/** Orders parents before the volumes mounted on them. */
function ordered(requests: ReadonlyMap<string, Request>): [string, Request][] {
  const depth = (id: string, seen = 0): number => {
    const parent = requests.get(id)?.parentID
    return parent && seen < 16 ? depth(parent, seen + 1) + 1 : 0
  }
  return [...requests].sort(([a], [b]) => depth(a) - depth(b) || (a < b ? -1 : 1))
}
