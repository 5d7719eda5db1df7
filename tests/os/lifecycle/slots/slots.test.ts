import { describe, expect, test } from 'bun:test'
import { Grub } from '../../../../src/os/lifecycle/slots/grub.ts'
import { type BootLoader, rootFile, type Slot, type SlotRelease } from '../../../../src/os/lifecycle/slots/slot.ts'
import { SystemdBoot } from '../../../../src/os/lifecycle/slots/systemd-boot.ts'
import type { BlockAccess } from '../../../../src/wire/fat/block-access.ts'
import { formatFat } from '../../../../src/wire/fat/format.ts'
import { FatVolume } from '../../../../src/wire/fat/volume.ts'
import { type MemoryDisk, memoryDisk } from '../../../support/memory-disk.ts'
import { everyCut } from '../../../wire/fat/power-cut.ts'
import { testRelease } from './release.ts'

const loaders = { 'systemd-boot': SystemdBoot, grub: Grub } as const
const one = testRelease('v1.13.0')
const two = testRelease('v1.13.1')

async function installed(kind: keyof typeof loaders): Promise<{ disk: MemoryDisk; loader: BootLoader }> {
  const disk = memoryDisk(34 << 20)
  await formatFat(disk, { label: 'BOOT', serial: 7 })
  const loader = new loaders[kind](await FatVolume.open(disk))
  await loader.prepare()
  await loader.write('a', one)
  await loader.keep('a')
  return { disk, loader }
}

const opened = async (kind: keyof typeof loaders, disk: BlockAccess) => new loaders[kind](await FatVolume.open(disk))

/** Whether everything that starting a slot takes is there, byte for byte. */
async function whole(kind: keyof typeof loaders, disk: BlockAccess, slot: Slot, release: SlotRelease): Promise<boolean> {
  const volume = await FatVolume.open(disk)
  const kernels =
    kind === 'grub'
      ? ([`/${slot}/vmlinuz`, `/${slot}/initramfs.xz`] as const).map((path) => [path, path.slice(3)] as const)
      : [[`/EFI/ichor/${release.sha256('vmlinuz.efi').slice(0, 16)}.efi`, 'vmlinuz.efi'] as const]
  for (const [path, name] of [...kernels, [rootFile(release.rootHash), 'root.sqsh'] as const]) {
    const hash = new Bun.CryptoHasher('sha256')
    hash.update(await volume.read(path))
    if (hash.digest('hex') !== release.sha256(name)) return false
  }
  return true
}

describe.each(['systemd-boot', 'grub'] as const)('%s', (kind) => {
  test('an installed release is good, and boots next', async () => {
    const { loader } = await installed(kind)
    expect(await loader.state()).toEqual({
      slots: { a: { version: 'v1.13.0', rootHash: one.rootHash, image: one.image } },
      good: 'a',
      next: 'a',
    })
  })

  test('a new release is on trial until marked good', async () => {
    const { disk, loader } = await installed(kind)
    await loader.write('b', two)
    expect((await loader.state()).next).toBe('a')
    await loader.try('b')
    expect(await loader.state()).toMatchObject({ good: 'a', next: 'b', trial: { slot: 'b', left: 3 } })
    await loader.keep('b')
    const again = await (await opened(kind, disk)).state()
    expect(again).toMatchObject({ good: 'b', next: 'b', slots: { a: { version: 'v1.13.0' }, b: { version: 'v1.13.1' } } })
    expect(again.trial).toBeUndefined()
  })

  test('the trial of a written release can begin after the disk is opened again', async () => {
    const { disk, loader } = await installed(kind)
    await loader.write('b', two)
    const later = await opened(kind, disk)
    expect(await later.state()).toMatchObject({ good: 'a', next: 'a' })
    await later.try('b')
    expect(await (await opened(kind, disk)).state()).toMatchObject({ good: 'a', next: 'b', slots: { b: { version: 'v1.13.1' } } })
    await (await opened(kind, disk)).giveUp()
    const again = await opened(kind, disk)
    await again.write('b', one)
    await (await opened(kind, disk)).try('b')
    expect(await (await opened(kind, disk)).state()).toMatchObject({ next: 'b', slots: { b: { version: 'v1.13.0' } } })
  })

  test('rolling back is a trial of the other slot', async () => {
    const { loader } = await installed(kind)
    await loader.write('b', two)
    await loader.try('b')
    await loader.keep('b')
    await loader.try('a')
    expect(await loader.state()).toMatchObject({ good: 'b', next: 'a', trial: { slot: 'a', left: 3 } })
    await loader.keep('a')
    expect(await loader.state()).toMatchObject({ good: 'a', next: 'a' })
  })

  test('an aborted trial falls back at once, and the slot can be written again', async () => {
    const { loader } = await installed(kind)
    await loader.write('b', two)
    await loader.try('b')
    await loader.giveUp()
    const state = await loader.state()
    expect(state).toMatchObject({ good: 'a', next: 'a' })
    expect(state.trial).toBeUndefined()
    await loader.write('b', two)
  })

  test('the slot last marked good is never written', async () => {
    const { disk, loader } = await installed(kind)
    const before = disk.digest()
    await expect(loader.write('a', two)).rejects.toThrow('slot A is the one last marked good')
    expect(disk.digest()).toBe(before)
  })

  test('an empty slot is neither tried nor marked good', async () => {
    const { loader } = await installed(kind)
    await expect(loader.try('b')).rejects.toThrow('slot B holds no release')
    await expect(loader.keep('b')).rejects.toThrow('slot B holds no release')
  })

  test('a file that differs from the manifest aborts the write, and is never booted', async () => {
    const { loader } = await installed(kind)
    const damaged: SlotRelease = { ...two, open: () => testRelease('v6.6.6').open('root.sqsh') }
    await expect(loader.write('b', damaged)).rejects.toThrow('is damaged')
    expect(await loader.state()).toMatchObject({ good: 'a', next: 'a', slots: { a: { version: 'v1.13.0' } } })
    expect((await loader.state()).slots.b).toBeUndefined()
  })

  test('an image that does not fit changes nothing, and the other release is kept', async () => {
    const { disk, loader } = await installed(kind)
    await loader.write('b', two)
    await loader.try('b')
    await loader.keep('b')
    await loader.try('a')
    await loader.keep('a')
    const before = disk.digest()
    await expect(loader.write('b', testRelease('v1.13.2', 20 << 20))).rejects.toThrow(/boot partition is too small.*nothing was changed/)
    expect(disk.digest()).toBe(before)
  })

  test('space of the replaced release is available', async () => {
    const { loader } = await installed(kind)
    const size = kind === 'grub' ? 9 << 20 : 12 << 20
    await loader.write('b', testRelease('v1.13.1', size))
    await loader.write('b', testRelease('v1.13.2', size))
    await loader.try('b')
    expect(await loader.state()).toMatchObject({ good: 'a', next: 'b', slots: { b: { version: 'v1.13.2' } } })
  })

  test('root file systems are kept as long as a slot uses them', async () => {
    const { disk, loader } = await installed(kind)
    for (const [index, version] of ['v1.13.1', 'v1.13.2', 'v1.13.3'].entries()) {
      const slot = index % 2 === 0 ? 'b' : 'a'
      await loader.write(slot, testRelease(version))
      await loader.try(slot)
      await loader.keep(slot)
    }
    const roots = (await (await FatVolume.open(disk)).list('/ichor')).map(({ name }) => `/ichor/${name}`).sort()
    expect(roots).toEqual([rootFile(testRelease('v1.13.2').rootHash), rootFile(testRelease('v1.13.3').rootHash)].sort())
  })

  test('the same release in both slots shares its root file system', async () => {
    const { disk, loader } = await installed(kind)
    await loader.write('b', one)
    await loader.try('b')
    expect(await whole(kind, disk, 'a', one)).toBe(true)
    expect(await whole(kind, disk, 'b', one)).toBe(true)
  })

  test('a power cut at any write of an upgrade leaves a bootable slot', async () => {
    const { disk, loader } = await installed(kind)
    const before = disk.copy()
    const from = disk.writes.length
    await loader.write('b', two)
    await loader.try('b')
    const seen = new Set<string>()
    const cuts = await everyCut(before, disk.writes.slice(from), async (after, cut) => {
      const { good, next } = await (await opened(kind, after)).state()
      expect([cut, good]).toEqual([cut, 'a'])
      expect([cut, await whole(kind, after, 'a', one)]).toEqual([cut, true])
      if (next === 'b') expect([cut, await whole(kind, after, 'b', two)]).toEqual([cut, true])
      else expect([cut, next]).toEqual([cut, 'a'])
      seen.add(next ?? 'none')
    })
    expect(cuts).toBeGreaterThan(20)
    expect([...seen].sort()).toEqual(['a', 'b'])
  })

  test('a power cut at any write of marking good or rolling back leaves one of both states', async () => {
    const { disk, loader } = await installed(kind)
    await loader.write('b', two)
    await loader.try('b')
    for (const [step, outcomes] of [
      [() => loader.keep('b'), ['b']],
      [() => loader.try('a'), ['a', 'b']],
      [() => loader.keep('a'), ['a']],
    ] as const) {
      const before = disk.copy()
      const from = disk.writes.length
      await step()
      await everyCut(before, disk.writes.slice(from), async (after, cut) => {
        const { next, good } = await (await opened(kind, after)).state()
        expect([cut, outcomes.some((slot) => slot === next)]).toEqual([cut, true])
        expect([cut, good !== undefined]).toEqual([cut, true])
        expect([cut, await whole(kind, after, 'a', one), await whole(kind, after, 'b', two)]).toEqual([cut, true, true])
      })
    }
  })

  test('an interrupted write is repeated over its remains', async () => {
    const { disk, loader } = await installed(kind)
    const before = disk.copy()
    const from = disk.writes.length
    await loader.write('b', two)
    await loader.try('b')
    const calls = disk.writes.slice(from)
    for (let at = 0; at < calls.length; at += 5) {
      const half = memoryDisk(before)
      for (const call of calls.slice(0, at)) if (call !== 'flush') await half.write(call.offset, call.bytes)
      const again = await opened(kind, half)
      await again.write('b', two)
      await again.try('b')
      expect(await again.state()).toMatchObject({ good: 'a', next: 'b' })
      expect(await whole(kind, half, 'b', two)).toBe(true)
    }
  })
})
