/** Volumes as the sequences use them: asked for, waited for, and let go of together. */
import type { Reader } from '../../cosi/controller.ts'
import type { Logger } from '../../cosi/log.ts'
import type { SpecOf } from '../../cosi/resource.ts'
import type { Store } from '../../cosi/store.ts'
import { VolumeLifecycle } from '../block/resources/volume-lifecycle.ts'
import { VolumeMountRequest, VolumeMountStatus } from '../block/resources/volume-mount.ts'
import { VolumeStatus } from '../block/resources/volume-status.ts'
import type { Mode } from '../kernel.ts'

const requester = 'machined'

/** Id of VolumeLifecycle. */
export const volumeLifecycleId = 'lifecycle'

/** Id of init's own request for a volume, and of the status that answers it. */
export const mountId = (volumeID: string): string => `${requester}-${volumeID}`

/** Whether what is kept on STATE cannot be read yet: the machine may have one, and it is not mounted. A container has it from the start. */
export const stateIsAwaited = (
  mode: Mode,
  volumes: Pick<Reader<SpecOf<typeof VolumeStatus>>, 'get'>,
  mounts: Pick<Reader<unknown>, 'get'>,
): boolean => mode !== 'container' && volumes.get('STATE')?.spec.phase !== 'missing' && !mounts.get(mountId('STATE'))

/** What init asks for when it wants a volume. */
export const mountRequest = (volumeID: string, secure = false) => ({
  volumeID,
  requester,
  readOnly: false,
  detached: false,
  disableAccessTime: false,
  secure,
})

/** How long is waited, and who is told meanwhile. */
interface Waiting {
  readonly log: Logger
  readonly signal: AbortSignal
}

/** Asks for a volume and waits until it is mounted. */
export function mountVolume(store: Store, volumeID: string, waiting: Waiting, secure?: boolean): Promise<void> {
  store.put(VolumeMountRequest, mountId(volumeID), mountRequest(volumeID, secure))
  return untilMounted(store, volumeID, waiting)
}

/** Waits until a volume that was asked for is mounted; what is wrong with it is told. Rejects with the signal's reason. */
export async function untilMounted(store: Store, volumeID: string, { log, signal }: Waiting): Promise<void> {
  let told = ''
  const stop = store.subscribe(
    VolumeStatus,
    ({ resource }) => {
      const { phase, errorMessage = '' } = resource?.spec ?? {}
      if (phase !== 'failed' || errorMessage === told) return
      told = errorMessage
      log.error('volume cannot be used', { volume: volumeID, error: errorMessage })
    },
    { only: volumeID, bootstrap: true },
  )
  try {
    await store.until(VolumeMountStatus, mountId(volumeID), undefined, { signal })
  } finally {
    stop()
  }
}

/** Lets go of a volume and waits until it is unmounted. */
export async function unmountVolume(store: Store, volumeID: string, signal: AbortSignal): Promise<void> {
  if (!store.get(VolumeMountRequest, mountId(volumeID))) return
  await gone(store, VolumeMountRequest, mountId(volumeID), signal)
  await vanished(store, VolumeMountStatus, mountId(volumeID), signal)
}

/** Says that volumes are in use from here on. */
export function beginVolumes(store: Store): void {
  store.put(VolumeLifecycle, volumeLifecycleId, {})
}

/** Lets all volumes go and waits until nothing of a disk is mounted any more. */
export async function endVolumes(store: Store, signal: AbortSignal): Promise<void> {
  if (store.get(VolumeLifecycle, volumeLifecycleId)) await gone(store, VolumeLifecycle, volumeLifecycleId, signal)
}

type Kind = Parameters<Store['destroy']>[0]

/** Tears down, waits until nobody holds it, destroys. */
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
