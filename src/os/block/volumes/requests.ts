/** Volumes for sequences: request, wait for and release them. */
import type { Reader } from '../../../cosi/controller.ts'
import type { Logger } from '../../../cosi/log.ts'
import type { SpecOf } from '../../../cosi/resource.ts'
import type { Store } from '../../../cosi/store.ts'
import type { Mode } from '../../kernel.ts'
import { VolumeLifecycle, volumeLifecycleId } from '../resources/volume-lifecycle.ts'
import { mountId, mountRequest, VolumeMountRequest, VolumeMountStatus } from '../resources/volume-mount.ts'
import { VolumeStatus } from '../resources/volume-status.ts'

/** Whether files on STATE may exist but are not readable yet, because it is not mounted. In a container it is always available. */
export const stateIsAwaited = (
  mode: Mode,
  volumes: Pick<Reader<SpecOf<typeof VolumeStatus>>, 'get'>,
  mounts: Pick<Reader<unknown>, 'get'>,
): boolean => mode !== 'container' && volumes.get('STATE')?.spec.phase !== 'missing' && !mounts.get(mountId('STATE'))

/** How long to wait, and where to log errors. */
interface Waiting {
  readonly log: Logger
  readonly signal: AbortSignal
}

/** Requests a volume and waits until it is mounted. */
export function mountVolume(store: Store, volumeID: string, waiting: Waiting, secure?: boolean): Promise<void> {
  store.put(VolumeMountRequest, mountId(volumeID), mountRequest(volumeID, secure))
  return untilMounted(store, volumeID, waiting)
}

/** Waits until a requested volume is mounted; its errors are logged. Rejects with the signal's reason. */
export async function untilMounted(store: Store, volumeID: string, { log, signal }: Waiting): Promise<void> {
  let reported = ''
  const stop = store.subscribe(
    VolumeStatus,
    ({ resource }) => {
      const { phase, errorMessage = '' } = resource?.spec ?? {}
      if (phase !== 'failed' || errorMessage === reported) return
      reported = errorMessage
      log.error('volume failed', { volume: volumeID, error: errorMessage })
    },
    { only: volumeID, bootstrap: true },
  )
  try {
    await store.until(VolumeMountStatus, mountId(volumeID), undefined, { signal })
  } finally {
    stop()
  }
}

/** Releases a volume and waits until it is unmounted. */
export async function unmountVolume(store: Store, volumeID: string, signal: AbortSignal): Promise<void> {
  if (!store.get(VolumeMountRequest, mountId(volumeID))) return
  await gone(store, VolumeMountRequest, mountId(volumeID), signal)
  await vanished(store, VolumeMountStatus, mountId(volumeID), signal)
}

/** Starts the use of volumes. */
export function beginVolumes(store: Store): void {
  store.put(VolumeLifecycle, volumeLifecycleId, {})
}

/** Releases all volumes and waits until no file system of a disk is mounted and no encrypted volume is open. */
export async function endVolumes(store: Store, signal: AbortSignal): Promise<void> {
  if (store.get(VolumeLifecycle, volumeLifecycleId)) await gone(store, VolumeLifecycle, volumeLifecycleId, signal)
  const isOpen = ({ spec }: { spec: SpecOf<typeof VolumeStatus> }) => spec.encryptionProvider && openPhases.has(spec.phase)
  for (const { metadata } of store.list(VolumeStatus).filter(isOpen))
    await watched(store, VolumeStatus, metadata.id, signal, () => {
      const status = store.get(VolumeStatus, metadata.id)
      return !status || !isOpen(status)
    })
}

/** Phases of an encrypted volume in which its mapping exists. */
const openPhases: ReadonlySet<string> = new Set(['prepared', 'ready'])

type Kind = Parameters<Store['destroy']>[0]

/** Tears a resource down, waits until its finalizers are removed, and destroys it. */
async function gone(store: Store, type: Kind, id: string, signal: AbortSignal): Promise<void> {
  store.teardown(type, id)
  await watched(store, type, id, signal, () => (store.get(type, id)?.metadata.finalizers.length ?? 0) === 0)
  if (store.get(type, id)) store.destroy(type, id)
}

const vanished = (store: Store, type: Kind, id: string, signal: AbortSignal) =>
  watched(store, type, id, signal, () => store.get(type, id) === undefined)

function watched(store: Store, type: Kind, id: string, signal: AbortSignal, done: () => boolean): Promise<void> {
  if (done()) return Promise.resolve()
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const stop = store.subscribe(type, () => done() && resolve(), { only: id })
  const abort = () => reject(signal.reason)
  signal.addEventListener('abort', abort)
  if (signal.aborted) abort()
  return promise.finally(() => {
    stop()
    signal.removeEventListener('abort', abort)
  })
}
