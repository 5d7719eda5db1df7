import { describe, expect, test } from 'bun:test'
import { type Config, type Found, locate } from '../../../src/os/block/volumes/view.ts'

function machine(...partitions: { id: string; label: string }[]): Found {
  const disks = [...new Set(partitions.map(({ id }) => id.slice(0, 3)))]
  const common = { size: 1e9, pretty_size: '1.0 GB', io_size: 512, sector_size: 512 }
  return {
    system: 'vda',
    disks: disks.map((id) => ({
      metadata: { id },
      spec: { dev_path: `/dev/${id}`, readonly: false, cdrom: false, ...common },
    })) as unknown as Found['disks'],
    volumes: partitions.map(({ id, label }) => ({
      metadata: { id },
      spec: { dev_path: `/dev/${id}`, parent: id.slice(0, 3), partition_label: label, ...common },
    })) as unknown as Found['volumes'],
  }
}

const archive = { type: 'partition', locator: { match: 'volume.partition_label == "ARCHIVE"' }, provisioning: {} } as unknown as Config

describe('an existing volume', () => {
  test('is the one on the first disk', () => {
    const found = machine({ id: 'vdc1', label: 'ARCHIVE' }, { id: 'vdb2', label: 'ARCHIVE' }, { id: 'vdb1', label: 'other' })
    expect(locate(archive, found)?.metadata.id).toBe('vdb2')
  })

  test('stays located when a similar disk is attached', () => {
    const found = machine({ id: 'vdc1', label: 'ARCHIVE' }, { id: 'sda1', label: 'ARCHIVE' })
    expect(locate(archive, found, '/dev/vdc1')?.metadata.id).toBe('vdc1')
    expect(locate(archive, machine({ id: 'sda1', label: 'ARCHIVE' }), '/dev/vdc1')?.metadata.id).toBe('sda1')
  })
})
