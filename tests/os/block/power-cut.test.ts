/** Whatever moment the power is cut at, what is found afterwards is what was before or what comes after. */
import { describe, expect, test } from 'bun:test'
import { writeDiskTable } from '../../../src/os/block/device.ts'
import { addPartition, planDisk, writeLayout } from '../../../src/os/block/layout.ts'
import { readMetaPartition, writeMetaPartition } from '../../../src/os/block/meta/partition.ts'
import { wipeSignatures } from '../../../src/os/block/wipe.ts'
import { DecodeError } from '../../../src/wire/decode-error.ts'
import { type GptTable, newTable, readTable } from '../../../src/wire/gpt/table.ts'
import { writeAdv } from '../../../src/wire/meta.ts'
import { probe } from '../../../src/wire/probe/probe.ts'
import { viewOf } from '../../../src/wire/probe/view.ts'
import { type MemoryDisk, memoryDisk } from '../../support/memory-disk.ts'
import { powerCuts, someCuts } from './power-cuts.ts'

const mebibyte = 1 << 20
const disk = (from: number | Uint8Array) => Object.assign(memoryDisk(from), { path: '/dev/vda', sectorSize: 512, close: async () => {} })
const seen = (image: Uint8Array) => viewOf(image.length, [{ offset: 0, bytes: image }])
const bytes = (text: string) => new Uint8Array(Buffer.from(text))

/** An image to be looked at as it is, without a copy of it. */
const readOnly = (image: Uint8Array) => {
  const refused = async () => {
    throw new Error('it is only looked at')
  }
  return { size: image.length, read: async (at: number, length: number) => image.subarray(at, at + length), write: refused, flush: refused }
}

/** Records an operation on what a disk holds. */
async function recorded(
  before: Uint8Array,
  operation: (disk: MemoryDisk & { path: string; sectorSize: number; close(): Promise<void> }) => Promise<void>,
) {
  const target = disk(before)
  await operation(target)
  return { calls: target.writes, after: target.bytes() }
}

const labels = (image: Uint8Array): string | undefined => {
  try {
    return readTable(seen(image), 512)
      .partitions.map(({ name }) => name)
      .join()
  } catch (error) {
    if (error instanceof DecodeError) return undefined
    throw error
  }
}

async function tableWith(...names: string[]): Promise<{ image: Uint8Array; table: GptTable }> {
  const target = disk(8 * mebibyte)
  const table = newTable({ sectorSize: 512, size: target.size, diskGuid: crypto.randomUUID() })
  for (const label of names) addPartition(table, { label, type: 'linux', size: mebibyte })
  await writeDiskTable(target, table, { fresh: true })
  return { image: target.bytes(), table: readTable(seen(target.bytes()), 512) }
}

describe('a partition table', () => {
  test('on an empty disk is either written or not', async () => {
    const empty = new Uint8Array(8 * mebibyte)
    const table = newTable({ sectorSize: 512, size: empty.length, diskGuid: crypto.randomUUID() })
    addPartition(table, { label: 'META', type: 'linux', size: mebibyte })
    const { calls } = await recorded(empty, (target) => writeDiskTable(target, table, { fresh: true }))
    let count = 0
    for (const { image } of powerCuts(empty, calls)) {
      expect([undefined, 'META']).toContain(labels(image))
      count++
    }
    expect(count).toBeGreaterThan(50)
  })

  test('after repeated changes is the old or the new one; its first copy is valid unless a sector was torn', async () => {
    let { image: before, table } = await tableWith('EFI', 'META')
    for (const added of ['STATE', 'EPHEMERAL', 'u-data']) {
      const old = labels(before)
      const next = { ...table, partitions: [...table.partitions] }
      addPartition(next, { label: added, type: 'linux', size: mebibyte })
      const { calls, after } = await recorded(before, (target) => writeDiskTable(target, next))
      for (const { image, wholeSectors } of powerCuts(before, calls)) {
        expect([old, `${old},${added}`]).toContain(labels(image))
        if (wholeSectors) expect(readTable(seen(image), 512).damaged).not.toBe('first')
      }
      before = after
      table = readTable(seen(after), 512)
    }
  })

  test('survives a second power cut after an interrupted change', async () => {
    const { image: before, table } = await tableWith('EFI', 'META')
    const next = { ...table, partitions: [...table.partitions] }
    addPartition(next, { label: 'STATE', type: 'linux', size: mebibyte })
    const { calls } = await recorded(before, (target) => writeDiskTable(target, next))
    for (const { image } of someCuts(before, calls, 7)) {
      const found = readTable(seen(image), 512)
      const old = labels(image)
      addPartition(found, { label: 'again', type: 'linux', size: mebibyte })
      const again = await recorded(image, (target) => writeDiskTable(target, found))
      for (const cut of powerCuts(image, again.calls)) expect([old, `${old},again`]).toContain(labels(cut.image))
    }
  })
})

describe('partitioning a disk', () => {
  const plan = { partitions: ['EFI', 'META', 'STATE'].map((label) => ({ label, type: 'linux' as const, size: mebibyte })) }

  const empty = new Uint8Array(3 * mebibyte)

  test('leaves the old content, an empty disk, or clean new partitions', async () => {
    const { image: before } = await tableWith('theirs', 'more')
    before.set(bytes('LUKS\xba\xbe'), mebibyte)
    const planned = planDisk({ path: '/dev/vda', size: before.length, sectorSize: 512 }, plan)
    const { calls } = await recorded(before, (target) => writeLayout(target, planned, true))
    for (const { image } of powerCuts(before, calls)) {
      const found = labels(image)
      expect(['theirs,more', '', 'EFI,META,STATE']).toContain(found!)
      if (found === 'EFI,META,STATE') expect(Buffer.compare(image.subarray(mebibyte, 4 * mebibyte), empty)).toBe(0)
    }
  })

  test('leaves foreign content intact or unrecognizable', async () => {
    const before = new Uint8Array(8 * mebibyte)
    before.set(bytes('hsqs'), 0)
    const planned = planDisk({ path: '/dev/vda', size: before.length, sectorSize: 512 }, plan)
    const { calls, after } = await recorded(before, (target) => writeLayout(target, planned, true))
    for (const { image } of powerCuts(before, calls)) expect([undefined, '', 'EFI,META,STATE']).toContain(labels(image))
    expect(probe(seen(after), 512)?.name).toBe('gpt')
    // Of its code nothing is left: what is there hands the start on to the next disk.
    expect(Buffer.from(after.subarray(0, 4)).toString('hex')).toBe('cd18ebfe')
    expect(after.subarray(4, 446).every((byte) => byte === 0)).toBe(true)
  })
})

describe('META', () => {
  const content = async (image: Uint8Array) => {
    const { values, legacy } = await readMetaPartition(readOnly(image))
    return JSON.stringify([...legacy, ...values].map(([tag, value]) => [tag, Buffer.from(value).toString()]))
  }

  test('holds the old or the new values after every cut', async () => {
    let before: Uint8Array = new Uint8Array(mebibyte)
    const values = new Map<number, Uint8Array>()
    for (const [tag, value] of [
      [10, 'network'],
      [12, 'one'],
      [12, 'x'.repeat(100_000)],
      [10, ''],
    ] as const) {
      const old = await content(before)
      values.set(tag, bytes(value))
      const { calls, after } = await recorded(before, (target) => writeMetaPartition(target, { values, legacy: new Map() }))
      const next = await content(after)
      for (const { image } of powerCuts(before, calls)) expect([old, next]).toContain(await content(image))
      before = after
    }
  })

  test('survives a second power cut after an interrupted write', async () => {
    const first = await recorded(new Uint8Array(mebibyte), (target) =>
      writeMetaPartition(target, { values: new Map([[12, bytes('one')]]), legacy: new Map() }),
    )
    const second = await recorded(first.after, (target) =>
      writeMetaPartition(target, { values: new Map([[12, bytes('two')]]), legacy: new Map() }),
    )
    for (const { image } of someCuts(first.after, second.calls, 5)) {
      const old = await content(image)
      const third = await recorded(image, (target) =>
        writeMetaPartition(target, { values: new Map([[12, bytes('three')]]), legacy: new Map() }),
      )
      for (const cut of powerCuts(image, third.calls)) expect([old, '[[12,"three"]]']).toContain(await content(cut.image))
    }
  })

  test('keeps its legacy area intact as well', async () => {
    const before = new Uint8Array(mebibyte)
    const legacy = writeAdv(
      new Map([
        [6, bytes('A')],
        [7, bytes('image')],
      ]),
    )
    before.set(legacy, mebibyte - 1024)
    before.set(legacy, mebibyte - 512)
    const { calls } = await recorded(before, (target) =>
      writeMetaPartition(target, { values: new Map(), legacy: new Map([[7, bytes('image')]]) }),
    )
    const [old, next] = ['[[6,"A"],[7,"image"]]', '[[7,"image"]]']
    for (const { image } of powerCuts(before, calls)) expect([old, next]).toContain(await content(image))
  })
})

test('an interrupted wipe leaves either the table with its partitions, or no table', async () => {
  const { image: before, table } = await tableWith('STATE', 'EPHEMERAL')
  const { calls } = await recorded(before, async (target) => {
    for (const { first, last } of table.partitions) await wipeSignatures(target, first * 512, (last + 1 - first) * 512)
    await wipeSignatures(target, 0, target.size)
  })
  for (const { image } of powerCuts(before, calls)) expect(['STATE,EPHEMERAL', undefined]).toContain(labels(image))
})
