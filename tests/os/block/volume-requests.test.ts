import { expect, test } from 'bun:test'
import { silent } from '../../../src/cosi/log.ts'
import { Runtime } from '../../../src/cosi/runtime.ts'
import { Store } from '../../../src/cosi/store.ts'
import { VolumeLifecycle, volumeLifecycleId } from '../../../src/os/block/resources/volume-lifecycle.ts'
import { mountId, VolumeMountRequest, VolumeMountStatus } from '../../../src/os/block/resources/volume-mount.ts'
import { VolumeStatus } from '../../../src/os/block/resources/volume-status.ts'
import { beginVolumes, endVolumes, mountVolume, unmountVolume, untilMounted } from '../../../src/os/block/volumes/requests.ts'
import { requestState } from '../../../src/os/lifecycle/controllers/state-mount.ts'

const forever = { log: silent, signal: new AbortController().signal }
const mounted = (volumeID: string) => ({
  volumeID,
  requester: 'machined',
  target: '/somewhere',
  readOnly: false,
  detached: false,
  disableAccessTime: false,
  secure: false,
})

test('STATE is requested while it exists and volumes are in use; its users wait for it', async () => {
  const store = new Store()
  const runtime = new Runtime(store, { log: silent })
  runtime.register(requestState)
  runtime.start()
  store.put(VolumeStatus, 'STATE', { phase: 'ready', type: 'partition' })
  await runtime.settled()
  expect(store.list(VolumeMountRequest)).toEqual([])
  beginVolumes(store)
  await runtime.settled()
  expect(store.get(VolumeMountRequest, mountId('STATE'))?.spec.volumeID).toBe('STATE')
  const waiting = untilMounted(store, 'STATE', forever)
  store.put(VolumeMountStatus, mountId('STATE'), mounted('STATE'))
  await waiting
  await endVolumes(store, forever.signal)
  await runtime.settled()
  expect(store.get(VolumeMountRequest, mountId('STATE'))).toBeUndefined()
  runtime.stop()
})

test('a volume is requested, awaited with each error logged once, and released after its last finalizer', async () => {
  const store = new Store()
  const recorded: unknown[] = []
  const log = { ...silent, error: (_: string, fields?: Record<string, unknown>) => void recorded.push(fields?.error) }
  const waiting = mountVolume(store, 'EPHEMERAL', { log, signal: forever.signal })
  for (const errorMessage of ['no room', 'no room'])
    store.put(VolumeStatus, 'EPHEMERAL', { phase: 'failed', type: 'partition', errorMessage })
  store.put(VolumeMountStatus, mountId('EPHEMERAL'), mounted('EPHEMERAL'))
  await waiting
  expect(recorded).toEqual(['no room'])
  store.addFinalizer(VolumeMountRequest, mountId('EPHEMERAL'), 'user')
  let gone = false
  const leaving = unmountVolume(store, 'EPHEMERAL', forever.signal).then(() => {
    gone = true
  })
  await Promise.resolve()
  expect(gone).toBe(false)
  store.removeFinalizer(VolumeMountRequest, mountId('EPHEMERAL'), 'user')
  store.destroy(VolumeMountStatus, mountId('EPHEMERAL'))
  await leaving
  expect(store.get(VolumeMountRequest, mountId('EPHEMERAL'))).toBeUndefined()
})

test('the release of volumes in use times out', async () => {
  const store = new Store()
  beginVolumes(store)
  store.addFinalizer(VolumeLifecycle, volumeLifecycleId, 'user')
  const aborted = new AbortController()
  const leaving = endVolumes(store, aborted.signal)
  aborted.abort(new Error('time is over'))
  await expect(leaving).rejects.toThrow('time is over')
})
