import { type Controller, defineController, exclusive, type Reader, type Round, shared, strong, weak } from '../../../cosi/controller.ts'
import type { SpecOf } from '../../../cosi/resource.ts'
import { messageOf } from '../../../wire/error-message.ts'
import { imageCacheIds, imageCacheMedium } from '../../block/public.ts'
import { VolumeConfig } from '../../block/resources/volume-config.ts'
import { VolumeMountRequest, VolumeMountStatus } from '../../block/resources/volume-mount.ts'
import { VolumeStatus } from '../../block/resources/volume-status.ts'
import { MachineConfig } from '../../config/resources/machine-config.ts'
import type { Kernel } from '../../kernel.ts'
import { Service } from '../../runtime/resources/service.ts'
import { type CopyFiles, copyImageCache } from '../copy-image-cache.ts'
import { usesImageCache } from '../image-cache-use.ts'
import { ImageCacheConfig } from '../resources/image-cache-config.ts'

const requester = 'cri.ImageCacheConfigController'
const { medium: mediumId, disk: diskId } = imageCacheIds

/** A volume of images: whether it is still undecided, its folder once it is mounted, and that folder once there are images in it. */
interface Place {
  readonly pending: boolean
  readonly folder?: string | undefined
  readonly root?: string | undefined
}

type Phase = SpecOf<typeof VolumeStatus>['phase']

/**
 * The images that came with the machine: mounts their volumes, copies them from the medium to the disk, and publishes where
 * registryd finds them.
 */
export const configImageCache = ({ mode, files }: { mode: Kernel['mode']; files: CopyFiles }): Controller => {
  let copied: string | undefined
  let refused: string | undefined
  const place = (phase: Phase | undefined, absent: readonly Phase[], target: string | undefined, below: string): Place => {
    const folder = target && `${target}${below}`
    const root = folder && files.exists(`${folder}/manifests`) ? folder : undefined
    return { pending: !target && !(phase && absent.includes(phase)), folder, root }
  }
  const copy = (of: string, from: string, to: string, { background, log }: Pick<Round, 'background' | 'log'>) =>
    background({ name: 'copy', of }, async (signal, wake) => {
      log.info('copying image cache', { from, to })
      try {
        log.info('image cache copied', await copyImageCache(files, { from, to, signal }))
        copied = of
      } catch (error) {
        // Taken out or no longer wanted: a later round begins again.
        if (signal.aborted) throw error
        log.error('copy image cache failed', { error: messageOf(error) })
        refused = of
      }
      wake()
    })
  return defineController({
    name: 'cri.ImageCacheConfigController',
    inputs: {
      config: weak(MachineConfig, { id: 'v1alpha1' }),
      volumes: weak(VolumeStatus),
      services: weak(Service, { id: 'registryd' }),
      onMedium: strong(VolumeMountStatus, { id: mediumId }),
      onDisk: strong(VolumeMountStatus, { id: diskId }),
    },
    outputs: { cache: exclusive(ImageCacheConfig), volume: shared(VolumeConfig), request: shared(VolumeMountRequest) },
    reconcile({ config, volumes, services, onMedium, onDisk, cache, volume, request, background, log }) {
      if (!usesImageCache(mode, config.get('v1alpha1')))
        return cache.put('image-cache', { status: 'disabled', copyStatus: 'skipped', roots: [] })
      volume.put(mediumId, imageCacheMedium)
      const phaseOf = (id: string) => volumes.get(id)?.spec.phase
      const there = phaseOf(mediumId) === 'ready'
      const ask = (volumeID: string, readOnly: boolean) =>
        request.put(volumeID, { volumeID, requester, readOnly, detached: false, disableAccessTime: false, secure: true })
      if (there) ask(mediumId, true)
      // Only a medium brings anything to write.
      if (phaseOf(diskId) === 'ready') ask(diskId, !there)
      const medium = place(phaseOf(mediumId), ['missing', 'failed'], targetOf(onMedium, mediumId), '/imagecache')
      const disk = place(phaseOf(diskId), ['missing', 'failed', 'waiting'], targetOf(onDisk, diskId), '')
      const of = JSON.stringify([volumes.get(mediumId)?.spec.location, volumes.get(diskId)?.spec.partitionUUID])
      const copyStatus = copyStatusOf(medium, disk, { done: copied === of, refused: refused === of })
      if (copyStatus === 'pending' && medium.root && disk.folder && onDisk.get(diskId)?.spec.readOnly === false)
        copy(of, medium.root, disk.folder, { background, log })
      // The disk answers before the medium.
      const roots = [disk.root, medium.root].filter((root) => root !== undefined)
      const healthy = services.get('registryd')?.spec.healthy === true
      const undecided = medium.pending || disk.pending || (roots.length > 0 && !healthy)
      cache.put('image-cache', { status: undecided ? 'preparing' : roots.length > 0 ? 'ready' : 'disabled', copyStatus, roots })
    },
  })
}

const targetOf = (mounts: Reader<SpecOf<typeof VolumeMountStatus>>, id: string): string | undefined => mounts.get(id)?.spec.target

/** `unknown` is a copy that failed; the log has the reason, and the next start tries again. */
function copyStatusOf(medium: Place, disk: Place, { done, refused }: { done: boolean; refused: boolean }): string {
  if (medium.pending) return 'pending'
  if (!medium.root) return 'skipped'
  if (disk.pending) return 'pending'
  if (!disk.folder) return 'skipped'
  return done ? 'ready' : refused ? 'unknown' : 'pending'
}
