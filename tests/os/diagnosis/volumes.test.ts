import { expect, test } from 'bun:test'
import { Store } from '../../../src/cosi/store.ts'
import { VolumeStatus } from '../../../src/os/block/resources/volume-status.ts'
import { findings } from '../../../src/os/diagnosis/findings.ts'

test('volumes that failed, and keys of volumes that do not work, are causes', () => {
  const store = new Store()
  const encrypted = { phase: 'ready', type: 'partition', encryptionProvider: 'luks2', encryptionSlot: 3 } as const
  store.put(VolumeStatus, 'EPHEMERAL', encrypted)
  store.put(VolumeStatus, 'u-new', { phase: 'waiting', type: 'partition' })
  const found = () =>
    findings({ store, files: { readTextIfThere: () => undefined }, history: { list: () => [] } }).map(
      ({ kind, subject, sentence, error }) => [kind, subject, sentence, error],
    )
  expect(found()).toEqual([])
  const reason = 'slot 0: PCR 7 changed since it was sealed'
  store.put(VolumeStatus, 'STATE', { ...encrypted, encryptionFailedSyncs: [reason] })
  store.put(VolumeStatus, 'u-data', { phase: 'failed', type: 'partition', errorMessage: 'no key opens encrypted volume "u-data"' })
  expect(found()).toEqual([
    [
      'unhealthy',
      'volume STATE',
      'the key of slot 3 opened it, but not all keys of the configuration are in place: each is tried again at the next start, if not before',
      reason,
    ],
    ['failing', 'volume u-data', 'it cannot be used, and what needs it waits', 'no key opens encrypted volume "u-data"'],
  ])
})
