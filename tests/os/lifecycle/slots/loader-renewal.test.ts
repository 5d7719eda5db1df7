import { expect, test } from 'bun:test'
import { present } from '../../../../rootfs/build/present.ts'
import { bootAlways, loaderVendor, SingleStart } from '../../../../src/os/lifecycle/slots/firmware.ts'
import { loaderFile, newLoaderFile } from '../../../../src/os/lifecycle/slots/loader-renewal.ts'
import type { Renewal } from '../../../../src/os/lifecycle/slots/slot.ts'
import { SystemdBoot } from '../../../../src/os/lifecycle/slots/systemd-boot.ts'
import { bootOptionTitle, formatBootOption, formatBootOrder, globalVendor, parseBootOrder } from '../../../../src/wire/efi/boot-option.ts'
import { formatFat } from '../../../../src/wire/fat/format.ts'
import { FatVolume } from '../../../../src/wire/fat/volume.ts'
import { memoryDisk } from '../../../support/memory-disk.ts'
import { everyCut } from '../../../wire/fat/power-cut.ts'
import { testRelease } from './release.ts'

const efi = { label: 'EFI', index: 1, device: '/dev/vda1', offset: 1 << 20, size: 64 << 20, uuid: '6f0ba7ce-2a49-4e5c-9a36-0c2b8c8ac0de' }
const [first, second] = [testRelease('v1.13.0'), testRelease('v1.13.1')]

/** Firmware with its variables: a start takes the option of BootNext once, else the boot loader at its usual place. */
function firmware() {
  const held = new Map<string, Uint8Array>()
  const key = (name: string, vendor: string) => `${name}-${vendor}`
  const variables = {
    efiVariables: (vendor: string) =>
      [...held.keys()].filter((name) => name.endsWith(vendor)).map((name) => name.slice(0, -vendor.length - 1)),
    readEfiVariable: (name: string, vendor: string) => held.get(key(name, vendor)),
    writeEfiVariable: (name: string, vendor: string, value: Uint8Array) => void held.set(key(name, vendor), value),
    removeEfiVariable: (name: string, vendor: string) => void held.delete(key(name, vendor)),
  }
  return {
    held,
    variables,
    single: new SingleStart(variables, efi, 512),
    async start(volume: FatVolume) {
      const next = variables.readEfiVariable('BootNext', globalVendor)
      variables.removeEfiVariable('BootNext', globalVendor)
      const taken = next !== undefined && (await volume.has(newLoaderFile)) ? newLoaderFile : loaderFile
      variables.writeEfiVariable('LoaderImageIdentifier', loaderVendor, Buffer.from(`${taken.replaceAll('/', '\\')}\0`, 'utf16le'))
      return Buffer.from(await volume.read(taken)).toString()
    },
  }
}

/** A machine with the first release, and the second one written. */
async function upgraded() {
  const disk = memoryDisk(64 << 20)
  await formatFat(disk, { label: 'EFI', serial: 1 })
  const volume = await FatVolume.open(disk)
  const machine = firmware()
  const loader = new SystemdBoot(volume, machine.single)
  await loader.prepare()
  await loader.write('a', first)
  await loader.keep('a')
  await loader.arm(first.open, first.size)
  await loader.renewal?.settle()
  await loader.write('b', second)
  await loader.try('b')
  return { disk, volume, loader, machine, renewal: present(loader.renewal, 'the renewal') }
}

const contents = async (release: typeof first) => Buffer.concat(await Array.fromAsync(release.open('systemd-boot.efi'))).toString()
const [old, renewed] = await Promise.all([contents(first), contents(second)])

test('a boot loader that started a machine which is healthy takes the place of the one before', async () => {
  const { volume, machine, renewal } = await upgraded()
  await renewal.try()
  expect(await machine.start(volume)).toBe(renewed)
  expect(await renewal.settle()).toBe('renewed')
  expect(await machine.start(volume)).toBe(renewed)
  expect(await volume.has(newLoaderFile)).toBe(false)
  expect(await renewal.settle()).toBeUndefined()
  expect(machine.variables.efiVariables(globalVendor)).toEqual([])
})

test('a boot loader is started once: one that does not come up leaves the machine to the one before', async () => {
  const { volume, machine, renewal } = await upgraded()
  await renewal.try()
  expect(await machine.start(volume)).toBe(renewed)
  // Nothing came of it, and the power was cycled.
  expect(await machine.start(volume)).toBe(old)
  expect(await renewal.settle()).toBe('failed')
  expect(await volume.has(newLoaderFile)).toBe(false)
})

test('a restart without the firmware leaves the start to come', async () => {
  const { volume, machine, renewal } = await upgraded()
  await renewal.try()
  expect(await renewal.settle()).toBe('waiting')
  expect(await machine.start(volume)).toBe(renewed)
  expect(await renewal.settle()).toBe('renewed')
})

test('a release that is given up takes its boot loader with it', async () => {
  const { volume, loader, machine, renewal } = await upgraded()
  await renewal.try()
  await loader.giveUp()
  expect(await machine.start(volume)).toBe(old)
  expect(await renewal.settle()).toBeUndefined()
  expect(machine.variables.efiVariables(globalVendor)).toEqual([])
})

test('a release with the same boot loader renews nothing', async () => {
  const { volume, loader, machine, renewal } = await upgraded()
  await renewal.try()
  await machine.start(volume)
  await renewal.settle()
  await loader.keep('b')
  await loader.write('a', second)
  expect(await volume.has(newLoaderFile)).toBe(false)
})

test('a power cut at any write of the renewal leaves a boot loader, and the next start completes it', async () => {
  const { disk, volume, machine, renewal } = await upgraded()
  await renewal.try()
  await machine.start(volume)
  const before = disk.copy()
  const from = disk.writes.length
  await renewal.settle()
  await everyCut(before, disk.writes.slice(from), async (cut) => {
    expect([old, renewed]).toContain(Buffer.from(await (await FatVolume.open(cut)).read(loaderFile)).toString())
  })
  const outcomes = new Set<Renewal | undefined>()
  const writes = disk.writes.slice(from)
  for (let done = 0; done <= writes.length; done++) {
    const again = before.copy()
    for (const call of writes.slice(0, done)) if (call !== 'flush') again.write(call.offset, call.bytes)
    const after = await FatVolume.open({ ...access(again), size: again.size })
    const next = firmware()
    next.variables.writeEfiVariable(
      'LoaderImageIdentifier',
      loaderVendor,
      present(machine.variables.readEfiVariable('LoaderImageIdentifier', loaderVendor), 'the file'),
    )
    outcomes.add(await present(new SystemdBoot(after, next.single).renewal, 'the renewal').settle())
    expect(await next.start(after)).toBe(renewed)
  }
  expect(outcomes).toEqual(new Set(['renewed', undefined]))
})

const access = (disk: ReturnType<ReturnType<typeof memoryDisk>['copy']>) => ({
  read: async (offset: number, length: number) => disk.read(offset, length),
  write: async (offset: number, bytes: Uint8Array) => disk.write(offset, bytes),
  flush: async () => {},
})

test('the system is the first boot option, and has one however often it is installed', () => {
  const { variables, held } = firmware()
  const { uuid } = efi
  const another = { title: 'Another', partition: { index: 1, uuid, firstSector: 2048, sectors: 4096 }, file: '\\EFI\\BOOT\\BOOTX64.EFI' }
  variables.writeEfiVariable('Boot0000', globalVendor, formatBootOption(another))
  variables.writeEfiVariable('Boot0001', globalVendor, Uint8Array.of(1))
  variables.writeEfiVariable('BootOrder', globalVendor, formatBootOrder([1, 0]))
  for (let again = 0; again < 2; again++) {
    expect(bootAlways(variables, efi, 512, '\\EFI\\BOOT\\BOOTX64.EFI')).toBe('Boot0002')
    expect(parseBootOrder(present(held.get(`BootOrder-${globalVendor}`), 'BootOrder'))).toEqual([2, 1, 0])
  }
  expect(bootOptionTitle(present(held.get(`Boot0002-${globalVendor}`), 'Boot0002'))).toBe('Ichor')
})
