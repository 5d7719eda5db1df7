/** Whatever moment the power is cut at while keys change, the volume opens with a key that is configured then. */
import { expect, test } from 'bun:test'
import { readHeader } from '../../../../src/wire/luks2/header.ts'
import { addSlot, type Change, openSlot, removeSlot } from '../../../../src/wire/luks2/key-slots.ts'
import { memoryDisk } from '../../../support/memory-disk.ts'
import { apply, cheap, secret, volume } from '../../../wire/luks2/volume.ts'
import { powerCuts } from '../power-cuts.ts'

/** How many of the moments are opened with a key; in all of them the header is read. */
const nth = 12

async function sweep(
  before: ReturnType<typeof memoryDisk>,
  { steps }: Change,
  allowed: readonly string[],
  keys: readonly [number, string][],
) {
  const old = before.bytes()
  const changing = memoryDisk(old)
  await apply(changing, steps)
  let count = 0
  for (const { image } of powerCuts(old, changing.writes)) {
    const read = async (offset: number, length: number) => image.subarray(offset, offset + length)
    const { metadata } = await readHeader(read, image.length)
    expect(allowed).toContain(Object.keys(metadata.keyslots).join())
    if (count++ % nth === 0)
      for (const [slot, passphrase] of keys) expect((await openSlot(metadata, slot, secret(passphrase), read))?.length).toBe(64)
  }
  expect(count).toBeGreaterThan(40)
  return changing
}

test('an added key leaves the others as they are, a removed key too', async () => {
  const { disk, header, volumeKey } = await volume()
  const added = await addSlot(header, volumeKey, { slot: 1, passphrase: secret('second'), cost: cheap })
  const both = await sweep(disk, added, ['0', '0,1'], [[0, 'first']])
  await sweep(both, removeSlot(added.header, 0), ['0,1', '1'], [[1, 'second']])
})

test('a replaced key works until the new one does', async () => {
  const { disk, header, volumeKey } = await volume()
  const replaced = await addSlot(header, volumeKey, { slot: 0, passphrase: secret('next'), cost: cheap })
  const old = disk.bytes()
  const changing = memoryDisk(old)
  await apply(changing, replaced.steps)
  let count = 0
  for (const { image } of powerCuts(old, changing.writes)) {
    const read = async (offset: number, length: number) => image.subarray(offset, offset + length)
    const { metadata } = await readHeader(read, image.length)
    const place = metadata.keyslots[31] ? 31 : 0
    if (count++ % nth === 0) expect((await openSlot(metadata, place, secret('first'), read))?.length).toBe(64)
    if (place === 31 && count % nth === 0) expect((await openSlot(metadata, 0, secret('next'), read))?.length).toBe(64)
  }
})

test('a volume that was not completely created is none', async () => {
  const disk = memoryDisk(20 << 20)
  const { steps } = await volume()
  await apply(disk, steps)
  for (const { image } of powerCuts(
    new Uint8Array(20 << 20),
    disk.writes.filter((call) => call === 'flush' || call.bytes.length < 1 << 20),
  )) {
    const read = async (offset: number, length: number) => image.subarray(offset, offset + length)
    const found = await readHeader(read, image.length).catch(() => undefined)
    if (found) expect(found.metadata.keyslots[0]).toBeDefined()
  }
})
