/** Disk images of QEMU (docs/interop/qcow2.txt, version 3): only the clusters that hold something are in the file. */
import { open } from 'node:fs/promises'
import { isZero } from './zeros.ts'

const clusterBits = 16
const clusterSize = 1 << clusterBits
const perTable = clusterSize / 8
/** 16 bits a count. */
const perRefcountBlock = clusterSize / 2
const copied = 1n << 63n // QCOW_OFLAG_COPIED: nothing else refers to it
const headerSize = 104

/** An image would not fit the format. */
export class Qcow2Error extends Error {
  override name = 'Qcow2Error'
}

/** Writes a disk of `size` bytes that begins with what `source` holds. Equal content gives equal bytes. */
export async function writeQcow2(path: string, source: string, size: number): Promise<void> {
  const input = await open(source, 'r')
  const output = await open(path, 'w', 0o644)
  try {
    const held = (await input.stat()).size
    if (held > size || size % sectorSize) throw new Qcow2Error(`a disk of ${size} bytes does not hold ${held}`)
    const clusters = Math.ceil(size / clusterSize)
    const l1Entries = Math.ceil(clusters / perTable)
    const l1Clusters = Math.ceil((l1Entries * 8) / clusterSize)
    // Header and first table, then what holds something as it comes, each second-level table behind its clusters.
    const l1 = new BigUint64Array(l1Entries)
    let next = 1 + l1Clusters
    const place = async (bytes: Uint8Array) => {
      await output.write(bytes, 0, bytes.length, next * clusterSize)
      return next++
    }
    const entry = (cluster: number) => copied | BigInt(cluster * clusterSize)
    const buffer = Buffer.alloc(clusterSize)
    for (let table = 0; table < l1Entries; table++) {
      const l2 = new BigUint64Array(perTable)
      for (let at = 0; at < perTable; at++) {
        const offset = (table * perTable + at) * clusterSize
        if (offset >= held) break
        const { bytesRead } = await input.read(buffer, 0, clusterSize, offset)
        buffer.fill(0, bytesRead)
        if (!isZero(buffer)) l2[at] = entry(await place(buffer))
      }
      if (l2.some((each) => each !== 0n)) l1[table] = entry(await place(bigEndian(l2)))
    }
    const blocks = refcountBlocks(next)
    const refcountTable = next
    const blockStart = next + blocks.tableClusters
    const refcounts = new BigUint64Array((blocks.tableClusters * clusterSize) / 8)
    for (let at = 0; at < blocks.count; at++) refcounts[at] = BigInt((blockStart + at) * clusterSize)
    const used = blockStart + blocks.count
    const counts = Buffer.alloc(blocks.count * clusterSize)
    for (let at = 0; at < used; at++) counts.writeUInt16BE(1, at * 2)
    await output.write(bigEndian(refcounts), 0, undefined, refcountTable * clusterSize)
    await output.write(counts, 0, undefined, blockStart * clusterSize)
    await output.write(bigEndian(l1), 0, undefined, clusterSize)
    await output.write(header(size, l1Entries, refcountTable, blocks.tableClusters), 0, undefined, 0)
    await output.truncate(used * clusterSize)
  } finally {
    await input.close()
    await output.close()
  }
}

const sectorSize = 512

/** How many clusters of counts it takes to count these clusters, the counts themselves and their table. */
function refcountBlocks(clusters: number): { count: number; tableClusters: number } {
  let count = 1
  let tableClusters = 1
  for (;;) {
    const needed = Math.ceil((clusters + count + tableClusters) / perRefcountBlock)
    const neededTable = Math.ceil((needed * 8) / clusterSize)
    if (needed <= count && neededTable <= tableClusters) return { count, tableClusters }
    count = needed
    tableClusters = neededTable
  }
}

function bigEndian(values: BigUint64Array): Buffer {
  const bytes = Buffer.alloc(values.length * 8)
  for (const [at, value] of values.entries()) bytes.writeBigUInt64BE(value, at * 8)
  return bytes
}

function header(size: number, l1Entries: number, refcountTable: number, refcountClusters: number): Buffer {
  const bytes = Buffer.alloc(headerSize + 8)
  bytes.write('QFI\xfb', 0, 'latin1')
  bytes.writeUInt32BE(3, 4)
  bytes.writeUInt32BE(clusterBits, 20)
  bytes.writeBigUInt64BE(BigInt(size), 24)
  bytes.writeUInt32BE(l1Entries, 36)
  bytes.writeBigUInt64BE(BigInt(clusterSize), 40)
  bytes.writeBigUInt64BE(BigInt(refcountTable * clusterSize), 48)
  bytes.writeUInt32BE(refcountClusters, 56)
  bytes.writeUInt32BE(4, 96) // counts of 2^4 bits
  bytes.writeUInt32BE(headerSize, 100)
  return bytes
}
