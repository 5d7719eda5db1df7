/** The recovery key that a machine makes for the recipients of its configuration, in headers on disks in memory. */
import { expect, test } from 'bun:test'
import { escrowedSlots, recoverySlots, recoveryTokenOf } from '../../../../src/os/block/encryption/recovery.ts'
import { VolumeRecovery } from '../../../../src/os/block/resources/volume-recovery.ts'
import { readHeader } from '../../../../src/wire/luks2/header.ts'
import { addSlot, openSlot } from '../../../../src/wire/luks2/key-slots.ts'
import { newRecoveryKey } from '../../../../src/wire/luks2/recovery-key.ts'
import { cheapKeys } from '../../../support/cheap-keys.ts'
import { memoryDisk } from '../../../support/memory-disk.ts'
import { apply, cheap, secret, volume } from '../../../wire/luks2/volume.ts'
import { powerCuts } from '../power-cuts.ts'
import { alice, bob, disk, escrowed, headerOn, keyIn, start, uuid, whom } from './disks-in-memory.ts'

cheapKeys()

/** How many of the moments of a power cut are opened with the keys; in all of them the header is read. */
const nth = 12
const otherUUID = '9d2f6a1c-0b7e-4c35-8d1e-5a3b7c9d1e2f'

test('each recipient reads the key, and the list is beside it', async () => {
  const state = await disk('STATE')
  const { provide, volumes, logged } = start({ STATE: state })
  expect((await provide('STATE', whom(alice, bob))).failedSyncs).toEqual([])
  const key = await escrowed(state, alice)
  expect(await escrowed(state, bob)).toBe(key)
  expect(escrowedSlots((await headerOn(state)).metadata)[0]?.recipients).toEqual(whom(alice, bob))
  expect(volumes.recoveries.get('STATE')).toMatchObject({ locked: false, keys: [{ recipients: whom(alice, bob) }] })
  expect(logged.join()).not.toContain(key)
  const writes = state.writes.length
  await provide('STATE', whom(bob, alice))
  await start({ STATE: state }).provide('STATE', whom(alice, bob))
  expect(state.writes.length).toBe(writes)
})

test('other recipients get another key, the one before opens nothing, and without the document there is none', async () => {
  const state = await disk('STATE')
  const { provide } = start({ STATE: state })
  await provide('STATE', whom(alice))
  const before = await escrowed(state, alice)
  await provide('STATE', undefined)
  expect(await escrowed(state, alice)).toBe(before)
  await provide('STATE', whom(bob))
  const after = await escrowed(state, bob)
  expect(after).not.toBe(before)
  await expect(escrowed(state, alice)).rejects.toThrow()
  const { metadata } = await headerOn(state)
  for (const slot of Object.keys(metadata.keyslots))
    expect(await openSlot(metadata, Number(slot), secret(before), state.read)).toBeUndefined()
  await provide('STATE', [])
  expect(Object.keys((await headerOn(state)).metadata.keyslots)).toEqual(['0'])
})

test('printed keys and those for recipients leave each other alone', async () => {
  const state = await disk('STATE')
  const { provide, volumes } = start({ STATE: state })
  await provide('STATE', whom(alice))
  const key = await escrowed(state, alice)
  const [first, second] = [newRecoveryKey(), newRecoveryKey()]
  for (const printed of [first, second]) expect([...(await volumes.replaceRecovery(printed, '')).values()]).toEqual([undefined])
  expect(await escrowed(state, alice)).toBe(key)
  await provide('STATE', whom(bob))
  await provide('STATE', [])
  const { metadata } = await headerOn(state)
  const [{ slot, recipients } = { slot: -1 }, ...more] = recoverySlots(metadata)
  expect([recipients, more.length, Object.keys(metadata.keyslots).length]).toEqual([undefined, 0, 2])
  expect((await openSlot(metadata, slot, secret(second), state.read))?.length).toBe(64)
})

test('all volumes have the same key: the others follow when one is added, and after a restart between', async () => {
  const [state, data] = [await disk('STATE'), await disk('u-data')]
  const recipients = whom(alice)
  await start({ STATE: state }).provide('STATE', recipients)
  const before = await escrowed(state, alice)
  const next = start({ STATE: state, 'u-data': data })
  await next.provide('STATE', recipients)
  expect(next.volumes.dueIn).toBeUndefined()
  await next.provide('u-data', recipients)
  expect(next.volumes.dueIn).toBeGreaterThan(0)
  expect(await escrowed(data, alice)).not.toBe(before)
  // The power is cut here: nothing is in memory at the next start.
  const last = start({ STATE: state, 'u-data': data })
  for (const id of ['STATE', 'u-data', 'STATE']) await last.provide(id, recipients)
  expect(await escrowed(state, alice)).toBe(await escrowed(data, alice))
  expect(last.volumes.dueIn).toBeUndefined()
})

test('where no other key opens a volume the escrow does, and the keys of the configuration are put in place', async () => {
  const state = await disk('STATE')
  await start({ STATE: state }).provide('STATE', whom(alice))
  const { provide, volumes } = start({ STATE: state })
  await expect(provide('STATE', whom(alice), otherUUID)).rejects.toThrow('no key opens encrypted volume "STATE"')
  const { locked, keys: [found] = [] } = volumes.recoveries.get('STATE') ?? {}
  expect(locked).toBe(true)
  const key = await keyIn(found?.escrow ?? '', alice)
  expect(await volumes.giveRecovery(newRecoveryKey())).toEqual([])
  expect(await volumes.giveRecovery(key)).toEqual(['STATE'])
  expect((await provide('STATE', whom(alice), otherUUID)).failedSyncs).toEqual([])
  const { metadata } = await headerOn(state)
  expect((await openSlot(metadata, 0, secret(`${otherUUID}STATE`), state.read))?.length).toBe(64)
  expect(await escrowed(state, alice)).toBe(key)
})

test('while only recovery keys open a volume, its recipients change more than once', async () => {
  const state = await disk('STATE')
  await start({ STATE: state }).provide('STATE', whom(alice))
  const { provide, volumes } = start({ STATE: state })
  await expect(provide('STATE', whom(alice), '')).rejects.toThrow('no key opens')
  expect(await volumes.giveRecovery(await keyIn(volumes.recoveries.get('STATE')?.keys[0]?.escrow ?? '', alice))).toEqual(['STATE'])
  for (const identity of [alice, bob, alice]) {
    // The machine has no UUID, so its own key is never put in place.
    expect((await provide('STATE', whom(identity), '')).failedSyncs).toEqual([
      expect.stringContaining('slot 0: the firmware has no usable UUID'),
    ])
    await escrowed(state, identity)
  }
  await provide('STATE', [], '')
  await escrowed(state, alice)
})

test('a volume without space for the key is used, and its status states the reason', async () => {
  const { disk: state, header, volumeKey } = await volume(`${uuid}STATE`)
  let full = header
  for (const [slot, size] of [4000, 4000, 2400].entries()) {
    const token = recoveryTokenOf({ escrow: 'x'.repeat(size) })
    const added = await addSlot(full, volumeKey, { slot: slot + 1, passphrase: secret(String(slot)), cost: cheap, token })
    await apply(state, added.steps)
    full = added.header
  }
  const opened = await start({ STATE: state }).provide('STATE', whom(alice))
  expect([opened.device, opened.failedSyncs]).toEqual([
    '/dev/dm-0',
    [expect.stringMatching(/^recovery key for recipients: .* does not fit/)],
  ])
})

test('readers see a key for recipients only while its volume is locked', () => {
  const key = { slot: 31, escrow: 'x', recipients: whom(alice) }
  expect(VolumeRecovery.redacted?.({ locked: false, keys: [key] })).toEqual({ locked: false, keys: [{ ...key, escrow: '' }] })
  expect(VolumeRecovery.redacted?.({ locked: true, keys: [key] })).toEqual({ locked: true, keys: [key] })
})

test('whatever moment the power is cut at while a key is replaced, some recipients read a key that works', async () => {
  const state = await disk('STATE')
  await start({ STATE: state }).provide('STATE', whom(alice))
  const before = state.bytes()
  const changing = memoryDisk(before)
  await start({ STATE: changing }).provide('STATE', whom(bob))
  let count = 0
  const seen = new Set<string>()
  for (const { image } of powerCuts(before, changing.writes)) {
    const read = async (offset: number, length: number) => image.subarray(offset, offset + length)
    const { metadata } = await readHeader(read, image.length)
    const found = escrowedSlots(metadata)
    const byBob = ({ recipients }: (typeof found)[number]) => recipients?.[0] === whom(bob)[0]
    seen.add(found.map((each) => (byBob(each) ? 'bob' : 'alice')).join())
    if (count++ % nth !== 0) continue
    const works = await Promise.all(
      found.map(async (each) => openSlot(metadata, each.slot, secret(await keyIn(each.escrow, byBob(each) ? bob : alice)), read)),
    )
    expect(works.some((volumeKey) => volumeKey?.length === 64)).toBe(true)
    expect((await openSlot(metadata, 0, secret(`${uuid}STATE`), read))?.length).toBe(64)
  }
  expect([...seen].sort()).toEqual(['alice', 'bob', 'bob,alice'])
  expect(count).toBeGreaterThan(40)
}, 120_000)
