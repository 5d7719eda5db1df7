import { expect, test } from 'bun:test'
import { installDisk, parseDisks, readPresets } from '../../../../../src/programs/talosctl/cluster/qemu/request.ts'

const gib = 1024 ** 3

test('disks are drivers with sizes, and the first one is installed to', () => {
  const disks = parseDisks('nvme:10GiB,virtio:6GiB')
  expect(disks).toEqual([
    { bus: 'nvme', size: 10 * gib },
    { bus: 'virtio', size: 6 * gib },
  ])
  expect(installDisk(disks)).toBe('/dev/nvme0n1')
  expect(installDisk(parseDisks('virtio:10GiB'))).toBe('/dev/vda')
  expect(installDisk(parseDisks('ahci:10GiB'))).toBe('/dev/sda')
})

test('disks that make no sense are refused with what to write', () => {
  expect(() => parseDisks('floppy:1GiB')).toThrow('--disks "floppy:1GiB": write driver:size, such as virtio:10GiB')
  expect(() => parseDisks('virtio')).toThrow('write driver:size')
  expect(() => parseDisks('virtio:1GiB')).toThrow('needs at least 6GiB')
  expect(() => parseDisks(Array(9).fill('virtio:6GiB').join(','))).toThrow('more than the 8')
})

test('a preset selects what machines start from; two of them contradict each other', () => {
  expect(readPresets(['iso'])).toEqual({ start: 'iso', secureBoot: false, unconfigured: false })
  expect(readPresets(['maintenance', 'pxe'])).toEqual({ start: 'pxe', secureBoot: false, unconfigured: true })
  expect(readPresets(['iso-secureboot'])).toEqual({ start: 'iso', secureBoot: true, unconfigured: false })
  expect(() => readPresets(['iso', 'pxe'])).toThrow('iso and pxe contradict each other')
  expect(() => readPresets(['usb'])).toThrow('--presets "usb": there are iso, iso-secureboot')
})
