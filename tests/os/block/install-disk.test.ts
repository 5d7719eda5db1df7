import { describe, expect, test } from 'bun:test'
import { chooseInstallDisk, describeDisks, InstallDiskError, type KnownDisk } from '../../../src/os/block/install-disk.ts'

const gigabyte = 1e9

function disk(id: string, more: Partial<KnownDisk['spec']> = {}, content?: KnownDisk['content']): KnownDisk {
  const spec = {
    dev_path: `/dev/${id}`,
    size: 100 * gigabyte,
    pretty_size: '100 GB',
    io_size: 512,
    sector_size: 512,
    readonly: false,
    cdrom: false,
    ...more,
  }
  return { id, spec, ...(content && { content }) }
}

const machine: KnownDisk[] = [
  disk(
    'nvme0n1',
    { transport: 'nvme', model: 'Samsung SSD 990', serial: 'S1', wwid: 'eui.1', bus_path: '/pci0000:00/0000:00:09.0/nvme' },
    {},
  ),
  disk(
    'sda',
    { transport: 'sata', rotational: true, model: 'Spinning', serial: 'S2', size: 4000 * gigabyte, pretty_size: '4.0 TB' },
    { found: { name: 'extfs', label: 'data' } },
  ),
  disk('vda', { transport: 'virtio', symlinks: ['/dev/disk/by-id/virtio-root'] }),
  disk('sr0', { cdrom: true, readonly: true, size: gigabyte, pretty_size: '1.0 GB' }),
]
const chosen = (settings: Parameters<typeof chooseInstallDisk>[1]) => chooseInstallDisk(machine, settings).id

describe('the install disk', () => {
  test('is the named one, by any of its names', () => {
    expect(chosen({ disk: '/dev/vda' })).toBe('vda')
    expect(chosen({ disk: '/dev/disk/by-id/virtio-root' })).toBe('vda')
  })

  test.each([
    [{ type: 'nvme' }, 'nvme0n1'],
    [{ type: 'hdd' }, 'sda'],
    [{ type: 'ssd' }, 'vda'],
    [{ model: 'Samsung*' }, 'nvme0n1'],
    [{ serial: 'S2' }, 'sda'],
    [{ wwid: 'eui.?' }, 'nvme0n1'],
    [{ busPath: '/pci0000:00/*' }, 'nvme0n1'],
    [{ name: 'v*' }, 'vda'],
    [{ name: '/dev/sda' }, 'sda'],
    [{ size: '>= 1TB' }, 'sda'],
    [{ size: '4000GB' }, 'sda'],
    [{ size: '< 1TB', type: 'nvme' }, 'nvme0n1'],
    [{ match: 'disk.transport == "nvme" && disk.size < 1u * TB' }, 'nvme0n1'],
    [{ match: 'disk.rotational', serial: 'S2' }, 'sda'],
  ] as const)('is the only one that %o fits', (diskSelector, id) => expect(chosen({ diskSelector })).toBe(id))

  test('is not guessed: no or several matches fail with a list of all disks', () => {
    const refused = (settings: Parameters<typeof chooseInstallDisk>[1]) => {
      try {
        return chosen(settings)
      } catch (error) {
        expect(error).toBeInstanceOf(InstallDiskError)
        return (error as Error).message
      }
    }
    expect(refused({ diskSelector: { size: '<= 100GB' } })).toContain(
      '/dev/nvme0n1 and /dev/vda match machine.install.diskSelector {"size":"<= 100GB"}',
    )
    expect(refused({ diskSelector: { model: 'None' } })).toContain('no disk matches')
    expect(refused({ disk: '/dev/sdz' })).toContain('there is no disk "/dev/sdz"')
    expect(refused({ disk: '/dev/sr0' })).toContain('cannot be written to')
    expect(refused({})).toContain('the configuration names none')
    expect(refused({})).toContain('/dev/sda (model "Spinning", serial "S2", 4.0 TB, holds extfs "data")')
    expect(refused({})).toContain('/dev/nvme0n1 (model "Samsung SSD 990", serial "S1", 100 GB, holds nothing)')
    expect(describeDisks([])).toBe('none')
  })
})
