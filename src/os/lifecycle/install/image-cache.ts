/** What an installation waits for when images came with the medium. */
import type { Logger } from '../../../cosi/log.ts'
import type { Machine } from '../../area.ts'
import { imageCacheIds } from '../../block/public.ts'
import { VolumeConfig } from '../../block/resources/volume-config.ts'
import { VolumeStatus } from '../../block/resources/volume-status.ts'
import { MachineConfig } from '../../config/resources/machine-config.ts'
import { usesImageCache } from '../../cri/public.ts'
import { ImageCacheConfig } from '../../cri/resources/image-cache-config.ts'
import { startService } from '../services.ts'

/** Time limits in milliseconds. A medium that is slow or damaged does not keep a machine from being installed. */
const servedLimit = 2 * 60_000
const copyLimit = 60 * 60_000

interface Waiting {
  readonly signal: AbortSignal
  readonly log: Logger
}

/** Serves the images that came with the medium, and waits until they are served or it is clear that there are none. */
export async function serveImages(machine: Machine, { signal, log }: Waiting): Promise<void> {
  const { store } = machine
  if (!isEnabled(machine)) return
  startService(machine, 'registryd')
  await within(servedLimit, signal, log, async (limit) => {
    // Until the volume is known, the status is that of the time before the configuration.
    await store.until(VolumeStatus, imageCacheIds.medium, undefined, { signal: limit })
    await store.until(ImageCacheConfig, 'image-cache', ({ spec }) => spec.status !== 'preparing', { signal: limit })
  })
}

/** Waits until the images of the medium are on the disk, when the configuration has a volume for them. */
export async function untilImagesCopied(machine: Machine, { signal, log }: Waiting): Promise<void> {
  const { store } = machine
  const { disk } = imageCacheIds
  const hasVolume = store.get(VolumeConfig, disk)?.spec.provisioning.partitionSpec !== undefined
  const ofMedium = store.get(ImageCacheConfig, 'image-cache')?.spec.roots.length ?? 0
  if (!isEnabled(machine) || !hasVolume || ofMedium === 0) return
  await within(copyLimit, signal, log, async (limit) => {
    const status = await store.until(VolumeStatus, disk, ({ spec: { phase } }) => phase === 'ready' || phase === 'failed', {
      signal: limit,
    })
    if (status.spec.phase === 'failed') return log.error('volume failed', { volume: disk, error: status.spec.errorMessage })
    const over = ({ spec: { copyStatus } }: { spec: { copyStatus: string } }) => copyStatus === 'ready' || copyStatus === 'unknown'
    await store.until(ImageCacheConfig, 'image-cache', over, { signal: limit })
  })
}

const isEnabled = ({ kernel, store }: Pick<Machine, 'kernel' | 'store'>): boolean =>
  usesImageCache(kernel.mode, store.get(MachineConfig, 'v1alpha1'))

async function within(limit: number, signal: AbortSignal, log: Logger, wait: (signal: AbortSignal) => Promise<void>): Promise<void> {
  const late = AbortSignal.timeout(limit)
  try {
    await wait(AbortSignal.any([signal, late]))
  } catch (error) {
    if (!late.aborted || signal.aborted) throw error
    log.warn('image cache not ready in time, going on without it')
  }
}
