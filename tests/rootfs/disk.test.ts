import { afterAll, expect, test } from 'bun:test'
import { mkdtempSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { writeGcp } from '../../src/programs/factory/formats/gcp.ts'
import { writeOva } from '../../src/programs/factory/formats/ova.ts'
import { Qcow2Error, writeQcow2 } from '../../src/programs/factory/formats/qcow2.ts'
import { geometry, writeVhd } from '../../src/programs/factory/formats/vhd.ts'
import { writeVmdk } from '../../src/programs/factory/formats/vmdk.ts'

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

/** A disk with content at its start, in its midst and at an end that is no whole unit of any format. */
function sample(name: string): string {
  const raw = join(folder, name)
  const bytes = Buffer.alloc((3 << 20) + 512)
  bytes.fill('start', 0, 70_000)
  bytes.fill('middle', 1_500_000, 1_800_000)
  bytes.fill('end', bytes.length - 512)
  writeFileSync(raw, bytes)
  return raw
}
const identification = 'ab'.repeat(32)
const qemuImg = Bun.which('qemu-img')
if (!qemuImg) console.log('skipped: disks are not compared, which needs qemu-img')

/** Compares a disk with the raw one it was made of, by a program that others wrote; a longer one has to end with zeros. */
function compared(format: string, made: string, raw: string): string {
  const { stdout, stderr } = Bun.spawnSync([qemuImg ?? '', 'compare', '-f', format, '-F', 'raw', made, raw])
  return `${stdout}${stderr}`
}

test.skipIf(!qemuImg)('disks of Azure and VMware hold what they were made of', async () => {
  const raw = sample('sample.raw')
  const [vhd, vmdk] = [join(folder, 'disk.vhd'), join(folder, 'disk.vmdk')]
  await writeVhd(vhd, raw, identification)
  expect(compared('vpc', vhd, raw)).toContain('Images are identical')
  await writeVmdk(vmdk, raw, 1 << 30, identification)
  expect(compared('vmdk', vmdk, raw)).toContain('Images are identical')
})

test('a disk of Azure has whole mebibytes and a footer with its checksum', async () => {
  const vhd = join(folder, 'footer.vhd')
  await writeVhd(vhd, sample('footer.raw'), identification)
  const bytes = readFileSync(vhd)
  expect(bytes.length).toBe((4 << 20) + 512)
  const footer = bytes.subarray(-512)
  expect([footer.toString('latin1', 0, 8), Number(footer.readBigUInt64BE(48)), footer.readUInt32BE(60)]).toEqual(['conectix', 4 << 20, 2])
  const sum = footer.reduce((all, byte, at) => all + (at >= 64 && at < 68 ? 0 : byte), 0)
  expect(footer.readUInt32BE(64)).toBe(~sum >>> 0)
})

test.each([
  [8192, { cylinders: 120, heads: 4, sectors: 17 }],
  [2 ** 21, { cylinders: 2080, heads: 16, sectors: 63 }],
  [2 ** 31, { cylinders: 65_535, heads: 16, sectors: 255 }],
])('the geometry of %d sectors', (sectors, expected) => {
  expect(geometry(sectors)).toEqual(expected)
})

test('a disk of Google Cloud is disk.raw of whole units', async () => {
  const [raw, packed] = [sample('gcp.raw'), join(folder, 'disk.raw.tar.gz')]
  await writeGcp(packed, raw, 16 << 20)
  const { stdout } = Bun.spawnSync(['tar', '-tvzf', packed])
  expect(stdout.toString()).toMatch(/^-rw-r--r-- .* 16777216 .* disk\.raw\n$/)
  const content = Bun.spawnSync(['sh', '-c', 'tar -xzOf "$0" | cmp -n "$2" - "$1"', packed, raw, String(statSync(raw).size)])
  expect(content.exitCode).toBe(0)
})

test('an OVA has its description first, whose hashes and sizes are those of its files', async () => {
  const [raw, vmdk, ova] = [sample('ova.raw'), join(folder, 'inside.vmdk'), join(folder, 'machine.ova')]
  await writeVmdk(vmdk, raw, 1 << 30, identification)
  await writeOva(ova, vmdk, { name: 'machine', version: 'v1', firmware: 'uefi', disk: 1 << 30 })
  const { stdout } = Bun.spawnSync(['tar', '-xvf', ova, '-C', folder])
  expect(stdout.toString()).toBe('machine.ovf\nmachine.mf\nmachine.vmdk\n')
  const of = (name: string) => new Bun.CryptoHasher('sha256').update(readFileSync(join(folder, name))).digest('hex')
  expect(readFileSync(join(folder, 'machine.mf'), 'utf8')).toBe(
    ['machine.ovf', 'machine.vmdk'].map((name) => `SHA256(${name})= ${of(name)}\n`).join(''),
  )
  const ovf = readFileSync(join(folder, 'machine.ovf'), 'utf8')
  expect(ovf).toContain(`ovf:size="${statSync(vmdk).size}"`)
  expect(ovf).toContain(`ovf:capacity="${1 << 30}"`)
  expect(ovf).toContain('vmw:value="efi"')
})
