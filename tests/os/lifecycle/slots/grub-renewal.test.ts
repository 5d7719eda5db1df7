import { expect, test } from 'bun:test'
import { present } from '../../../../rootfs/build/present.ts'
import { Grub } from '../../../../src/os/lifecycle/slots/grub.ts'
import { grubBlocks } from '../../../../src/os/lifecycle/slots/grub-core.ts'
import type { GrubDisk } from '../../../../src/os/lifecycle/slots/grub-renewal.ts'
import type { Renewal, SlotRelease } from '../../../../src/os/lifecycle/slots/slot.ts'
import type { BlockAccess } from '../../../../src/wire/fat/block-access.ts'
import { formatFat } from '../../../../src/wire/fat/format.ts'
import { FatVolume } from '../../../../src/wire/fat/volume.ts'
import { type MemoryDisk, memoryDisk } from '../../../support/memory-disk.ts'
import { everyCut } from '../../../wire/fat/power-cut.ts'
import { testRelease } from './release.ts'

const sector = 512
const mebibyte = 1 << 20
const [home, slots] = [
  { offset: mebibyte, size: mebibyte },
  { offset: 2 * mebibyte, size: 34 * mebibyte },
]
const half = home.size / 2

/** The images of GRUB of a version; the first sector of core.img ends with its list of blocks, and zeros before it. */
function grub(version: string, length: number) {
  const core = Buffer.alloc(length, `core of ${version};`)
  core.fill(0, 400, sector)
  return { boot: Buffer.alloc(sector, `boot of ${version};`), core }
}

const given = (version: string, { coreSize = 9_000, of = version } = {}): SlotRelease => {
  const { boot, core } = grub(of, coreSize)
  const files = new Map([
    ['grub/boot.img', boot],
    ['grub/core.img', core],
  ])
  const others = testRelease(version)
  const file = (name: string) => files.get(name)
  return {
    ...others,
    size: (name) => file(name)?.length ?? others.size(name),
    sha256: (name) => {
      const bytes = file(name)
      return bytes ? new Bun.CryptoHasher('sha256').update(bytes).digest('hex') : others.sha256(name)
    },
    open: (name) => {
      const bytes = file(name)
      return bytes
        ? (async function* () {
            yield bytes
          })()
        : others.open(name)
    },
  }
}

/** A part of a disk. */
const part = (disk: BlockAccess, { offset, size }: { offset: number; size: number }): BlockAccess => ({
  size,
  read: (at, length) => disk.read(offset + at, length),
  write: (at, bytes) => disk.write(offset + at, bytes),
  flush: () => disk.flush(),
})

const around = (disk: BlockAccess): GrubDisk => ({ home, onDisk: (run) => run(disk), onHome: (run) => run(part(disk, home)) })

const loaderOf = async (disk: BlockAccess) => new Grub(await FatVolume.open(part(disk, slots)), around(disk))

const table = Buffer.alloc(sector - 440, 'partition table')

/** A machine with a release in slot A and its GRUB in the first half. */
async function installed(release = given('v1.13.0'), core = grub('v1.13.0', 9_000)): Promise<MemoryDisk> {
  const disk = memoryDisk(slots.offset + slots.size)
  await formatFat(part(disk, slots), { label: 'BOOT', serial: 7 })
  const loader = await loaderOf(disk)
  await loader.prepare()
  await disk.write(440, table)
  for (const { offset, bytes } of grubBlocks(core.boot, core.core, home)) await disk.write(offset, bytes)
  await loader.write('a', release)
  await loader.keep('a')
  return disk
}

const settle = async (disk: BlockAccess) => present((await loaderOf(disk)).renewal, 'the renewal').settle()
const staged = async (disk: BlockAccess) => (await FatVolume.open(part(disk, slots))).list('/grub/trial')

/** Writes a release to a slot and marks it good, without the renewal. */
async function takes(disk: MemoryDisk, release: SlotRelease, slot: 'a' | 'b' = 'b') {
  const loader = await loaderOf(disk)
  await loader.write(slot, release)
  await loader.try(slot)
  await loader.keep(slot)
}

/** Starts as a BIOS does: the first sector names one of the core, which names the others. Gives where it is. Throws unless it is whole. */
async function starts(disk: BlockAccess, versions: Readonly<Record<string, number>>): Promise<{ version: string; offset: number }> {
  const record = Buffer.from(await disk.read(0, sector))
  expect(record.subarray(440).equals(table)).toBe(true)
  const begin = Number(record.readBigUInt64LE(0x5c))
  const first = Buffer.from(await disk.read(begin * sector, sector))
  const [next, count, segment] = [Number(first.readBigUInt64LE(500)), first.readUInt16LE(508), first.readUInt16LE(510)]
  expect([segment, first.readUInt16LE(496)]).toEqual([0x820, 0])
  expect(next).toBe(begin + 1)
  const loaded = Buffer.concat([first.subarray(0, 500), await disk.read(next * sector, count * sector)])
  for (const [version, length] of Object.entries(versions)) {
    const { boot, core } = grub(version, length)
    const whole = Buffer.alloc(Math.ceil(length / sector) * sector)
    whole.set(core)
    if (!Buffer.concat([whole.subarray(0, 500), whole.subarray(sector)]).equals(loaded)) continue
    expect(record.subarray(0, 0x5c).equals(boot.subarray(0, 0x5c))).toBe(true)
    return { version, offset: begin * sector }
  }
  throw new Error('the core is not whole')
}

const [old, renewed] = ['v1.13.0', 'v1.13.1']
const both = { [old]: 9_000, [renewed]: 70_000 }
const newer = given(renewed, { coreSize: 70_000 })

test('a new GRUB waits until its release is good, and is then started from the other half', async () => {
  const disk = await installed()
  const before = Buffer.from(await disk.read(home.offset, half))
  const loader = await loaderOf(disk)
  await loader.write('b', newer)
  await loader.try('b')
  await loader.renewal?.try()
  expect(await starts(disk, both)).toEqual({ version: old, offset: home.offset })
  await loader.keep('b')
  expect(await settle(disk)).toBe('renewed')
  expect(await starts(disk, both)).toEqual({ version: renewed, offset: home.offset + half })
  // An administrator returns to it by one number in the first sector.
  expect(before.equals(await disk.read(home.offset, half))).toBe(true)
  expect(await staged(disk)).toEqual([])
  expect(await settle(disk)).toBeUndefined()
})

test('the renewal after it goes to the first half again', async () => {
  const disk = await installed()
  await takes(disk, newer)
  await settle(disk)
  await takes(disk, given('v1.13.2', { coreSize: 30_000 }), 'a')
  expect(await settle(disk)).toBe('renewed')
  expect(await starts(disk, { 'v1.13.2': 30_000 })).toEqual({ version: 'v1.13.2', offset: home.offset })
})

test('a release that brings another boot.img alone renews it', async () => {
  const disk = await installed()
  const [boot, core] = [grub(renewed, 9_000).boot, grub(old, 9_000).core]
  const release = given(renewed, { of: old })
  const mixed: SlotRelease = {
    ...release,
    sha256: (name) => (name === 'grub/boot.img' ? new Bun.CryptoHasher('sha256').update(boot).digest('hex') : release.sha256(name)),
    open: (name) =>
      name === 'grub/boot.img'
        ? (async function* () {
            yield boot
          })()
        : release.open(name),
  }
  await takes(disk, mixed)
  expect(await settle(disk)).toBe('renewed')
  expect(Buffer.from(await disk.read(0, 0x5c)).equals(boot.subarray(0, 0x5c))).toBe(true)
  expect(Buffer.from(await disk.read(home.offset + half + sector, 8_000)).equals(core.subarray(sector, sector + 8_000))).toBe(true)
})

test('a release with the same GRUB renews nothing', async () => {
  const disk = await installed()
  await takes(disk, given(renewed, { of: old }))
  expect(await staged(disk)).toEqual([])
  expect(await settle(disk)).toBeUndefined()
})

test('a release that fails takes its GRUB with it', async () => {
  const disk = await installed()
  const loader = await loaderOf(disk)
  await loader.write('b', newer)
  await loader.try('b')
  await loader.giveUp()
  expect(await staged(disk)).toEqual([])
  expect(await settle(disk)).toBeUndefined()
  expect(await starts(disk, both)).toEqual({ version: old, offset: home.offset })
})

test('a GRUB whose release was not started yet waits, and goes when another release is written', async () => {
  const disk = await installed()
  const loader = await loaderOf(disk)
  await loader.write('b', newer)
  expect(await settle(disk)).toBe('waiting')
  expect(await starts(disk, both)).toEqual({ version: old, offset: home.offset })
  await loader.write('b', given('v1.13.2', { of: old }))
  expect(await staged(disk)).toEqual([])
  await loader.write('b', newer)
  await loader.try('b')
  await loader.keep('b')
  expect(await settle(disk)).toBe('renewed')
})

/** What the renewal ends with, and that it wrote nothing outside of BOOT. */
async function leaves(disk: MemoryDisk): Promise<Renewal | undefined> {
  const from = disk.writes.length
  const renewal = await settle(disk)
  const outside = disk.writes.slice(from).filter((call) => call !== 'flush' && call.offset < slots.offset)
  expect(outside).toEqual([])
  expect(await staged(disk)).toEqual([])
  return renewal
}

test.each([
  ['a new core that is longer than a half', 9_000, half + 1],
  ['a new core that is longer than the partition', 9_000, home.size],
  ['a core in use that is longer than a half', half + sector, 9_000],
])('%s has no room', async (_, oldSize, newSize) => {
  const disk = await installed(given(old), grub(old, oldSize))
  await takes(disk, given(renewed, { coreSize: newSize }))
  expect(await leaves(disk)).toBe('no-room')
  expect((await starts(disk, { [old]: oldSize })).version).toBe(old)
})

test('one that takes a half to its last byte has room', async () => {
  const disk = await installed(given(old), grub(old, half))
  await takes(disk, given(renewed, { coreSize: half }))
  expect(await settle(disk)).toBe('renewed')
  expect(await starts(disk, { [old]: half, [renewed]: half })).toEqual({ version: renewed, offset: home.offset + half })
})

/** A number in little-endian order. */
const number = (value: bigint) => {
  const bytes = Buffer.alloc(8)
  bytes.writeBigUInt64LE(value)
  return bytes
}

test.each([
  ['no boot code', 0, Buffer.alloc(440)],
  ['another place', 0x5c, number(34n)],
  ['a place that is no number of a disk', 0x5c, number(2n ** 64n - 1n)],
  ['several lists of blocks', home.offset + 496, Buffer.from([1])],
  ['blocks that are elsewhere', home.offset + 500, number(4096n)],
  ['no blocks', home.offset + 508, Buffer.alloc(2)],
  ['more blocks than the partition has', home.offset + 508, Buffer.from([0xff, 0xff])],
] as const)('a disk whose boot loader is of another system is left alone: %s', async (_, offset, bytes) => {
  const disk = await installed()
  await disk.write(offset, bytes)
  await takes(disk, newer)
  expect(await leaves(disk)).toBe('foreign')
})

test('a GRUB that was damaged while it waited is dropped', async () => {
  const disk = await installed()
  await takes(disk, newer)
  const volume = await FatVolume.open(part(disk, slots))
  const [file] = await volume.list('/grub/trial')
  const path = `/grub/trial/${present(file, 'the file').name}`
  const bytes = Buffer.from(await volume.read(path))
  bytes.writeUInt8(bytes.readUInt8(5_000) ^ 1, 5_000)
  await volume.replace(path, bytes)
  expect(await leaves(disk)).toBe('damaged')
})

test('a release without files that a BIOS could start brings none', async () => {
  const disk = await installed()
  await takes(disk, testRelease(renewed))
  expect(await staged(disk)).toEqual([])
})

test('a disk that does not hold what was written to it keeps the old core', async () => {
  const disk = await installed()
  await takes(disk, newer)
  const at = home.offset + half + 20_000
  const forgetful: BlockAccess = {
    ...disk,
    size: disk.size,
    read: async (offset, length) => {
      const bytes = new Uint8Array(await disk.read(offset, length))
      if (offset <= at && at < offset + length) bytes[at - offset] = 0
      return bytes
    },
  }
  await expect(settle(forgetful)).rejects.toThrow('does not hold what was written')
  expect(await starts(disk, both)).toEqual({ version: old, offset: home.offset })
  // The next start tries it again.
  expect(await settle(disk)).toBe('renewed')
})

test.each([
  ['the first half', 0],
  ['the second half', 1],
])(
  'a power cut at any write leaves a whole core where the first sector points, and the next start completes it: from %s',
  async (_, more) => {
    const disk = await installed()
    let [versions, free]: [Record<string, number>, 'a' | 'b'] = [both, 'b']
    let release = newer
    if (more === 1) {
      await takes(disk, newer)
      await settle(disk)
      release = given('v1.13.2', { coreSize: 40_000 })
      versions = { [renewed]: 70_000, 'v1.13.2': 40_000 }
      free = 'a'
    }
    const [before, after] = Object.keys(versions)
    const earlier = disk.copy()
    const from = disk.writes.length
    await takes(disk, release, free)
    expect(await settle(disk)).toBe('renewed')
    const writes = disk.writes.slice(from)
    const seen = new Set<string>()
    const cuts = await everyCut(earlier, writes, async (cut) => void seen.add((await starts(cut, versions)).version))
    expect(cuts).toBeGreaterThan(50)
    expect([...seen]).toEqual([before, after] as string[])
    const outcomes = new Set<Renewal | undefined>()
    for (let done = 0; done <= writes.length; done++) {
      const again = memoryDisk(earlier)
      for (const call of writes.slice(0, done)) if (call !== 'flush') await again.write(call.offset, call.bytes)
      const good = (await (await loaderOf(again)).state()).good === free
      const renewal = await settle(again)
      outcomes.add(renewal)
      const { version } = await starts(again, versions)
      expect(version).toBe(good ? (after as string) : (before as string))
      if (renewal !== 'waiting') expect(await staged(again)).toEqual([])
    }
    expect(outcomes).toEqual(new Set([undefined, 'waiting', 'renewed']))
  },
)
