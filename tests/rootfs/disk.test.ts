import { afterAll, expect, test } from 'bun:test'
import { mkdtempSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Qcow2Error, writeQcow2 } from '../../rootfs/image/qcow2.ts'

const folder = mkdtempSync(join(tmpdir(), 'ichor-qcow2-'))
afterAll(() => rmSync(folder, { recursive: true }))

/** Reads a disk back, cluster by cluster: written from the format, not from the writer. */
function readQcow2(image: Buffer): { size: number; clusters: Map<number, Buffer> } {
  if (image.toString('latin1', 0, 4) !== 'QFI\xfb' || image.readUInt32BE(4) !== 3) throw new Error('no qcow2 of version 3')
  const cluster = 1 << image.readUInt32BE(20)
  const masked = (at: number) => Number(image.readBigUInt64BE(at) & 0x00ff_ffff_ffff_fe00n)
  const refcounts = masked(48)
  const counted = (offset: number) => {
    const index = offset / cluster
    const block = masked(refcounts + Math.floor(index / (cluster / 2)) * 8)
    return image.readUInt16BE(block + (index % (cluster / 2)) * 2)
  }
  const clusters = new Map<number, Buffer>()
  for (let first = 0; first < image.readUInt32BE(36); first++) {
    const table = masked(masked(40) + first * 8)
    if (!table) continue
    for (let second = 0; second < cluster / 8; second++) {
      const at = masked(table + second * 8)
      if (!at) continue
      if (counted(at) !== 1) throw new Error('a cluster is not counted once')
      clusters.set(first * (cluster / 8) + second, image.subarray(at, at + cluster))
    }
  }
  for (let at = 0; at < image.length; at += cluster) if (counted(at) !== 1) throw new Error(`cluster ${at / cluster} is not counted`)
  return { size: Number(image.readBigUInt64BE(24)), clusters }
}

test('a disk holds what it was made of, and zeros take no room', async () => {
  const [raw, made] = [join(folder, 'disk.raw'), join(folder, 'disk.qcow2')]
  writeFileSync(raw, Buffer.alloc(100_000, 1))
  truncateSync(raw, 5 << 20)
  await writeQcow2(made, raw, 1 << 30)
  const { size, clusters } = readQcow2(readFileSync(made))
  expect(size).toBe(1 << 30)
  expect([...clusters.keys()]).toEqual([0, 1])
  expect(Buffer.concat([...clusters.values()])).toEqual(Buffer.concat([Buffer.alloc(100_000, 1), Buffer.alloc(2 * 65536 - 100_000)]))
  expect(statSync(made).size).toBeLessThan(600_000)
})

test('a disk that does not hold what it is made of is refused', async () => {
  const raw = join(folder, 'big.raw')
  writeFileSync(raw, Buffer.alloc(1024))
  await expect(writeQcow2(join(folder, 'small.qcow2'), raw, 512)).rejects.toThrow(Qcow2Error)
  await expect(writeQcow2(join(folder, 'odd.qcow2'), raw, 1025)).rejects.toThrow('does not hold')
})
