/** What is in a snapshot of etcd, as `etcdutl snapshot status` computes it. */
import { BoltDatabase, type ReadAt } from '../bolt.ts'
import { Crc32c } from '../crc32c.ts'
import { DecodeError } from '../decode-error.ts'

/** What is in a snapshot. */
export interface SnapshotInfo {
  /** CRC-32C of the names of all buckets and of their keys and values, in hexadecimal. */
  readonly hash: string
  /** The last revision. */
  readonly revision: number
  /** Keys that are there at that revision. */
  readonly keys: number
  /** Bytes of the database. */
  readonly size: number
}

/** Length of a revision as a key: 8 bytes, `_`, 8 bytes; one that deletes has a `t` behind it. */
const revisionLength = 17

/** Reads a whole database. Throws DecodeError for one that is not as etcd writes it. */
export function snapshotInfo(read: ReadAt): SnapshotInfo {
  const database = new BoltDatabase(read)
  const sum = new Crc32c()
  const keys = new Set<string>()
  let revision = 0n
  database.eachEntry((name) => {
    sum.update(name)
    const ofKeys = Buffer.from(name).toString() === 'key'
    return (key, value) => {
      sum.update(key)
      sum.update(value)
      if (!ofKeys) return
      if (key.length < revisionLength) throw new DecodeError('etcd revision', 0, `${key.length} bytes`)
      revision = Buffer.from(key.buffer, key.byteOffset, key.length).readBigUInt64BE(0)
      const own = keyOf(value)
      if (key.length > revisionLength) keys.delete(own)
      else keys.add(own)
    }
  })
  return { hash: sum.value.toString(16).padStart(8, '0'), revision: Number(revision), keys: keys.size, size: database.size }
}

/** The key of a `mvccpb.KeyValue`: field 1, which is written first; none where it is empty. */
function keyOf(value: Uint8Array): string {
  if (value[0] !== 0x0a) return ''
  let length = 0
  let at = 1
  for (let shift = 0; shift < 28; shift += 7) {
    const byte = value[at++] ?? 0
    length |= (byte & 0x7f) << shift
    if (byte < 0x80) break
  }
  return Buffer.from(value.buffer, value.byteOffset + at, Math.max(0, Math.min(length, value.length - at))).toString('latin1')
}
