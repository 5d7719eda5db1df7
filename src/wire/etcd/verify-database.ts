/** Verifies etcd's database as far as that is possible without checksums: every page, the order of keys, and every stored key. */
import { BoltDatabase, type ReadAt } from '../bolt.ts'
import { DecodeError } from '../decode-error.ts'
import { readProtobufFields } from './protobuf-fields.ts'

/** A revision as a key: 8 bytes, `_`, 8 bytes; one that deletes has a `t` behind it. */
const revisionLength = 17
/** Fields of `mvccpb.KeyValue`. */
const keyValue = { key: 1, last: 6 }
/** The bucket where etcd keeps the index of the last entry that it has applied. */
const metaBucket = 'meta'
const consistentIndex = 'consistent_index'

/** Returns the index of the last entry that was applied to the database. Throws DecodeError for one that etcd cannot use. */
export function verifyDatabase(read: ReadAt): bigint {
  const database = new BoltDatabase(read)
  database.checkFreelist()
  let applied: bigint | undefined
  database.eachEntry((name) => {
    const bucket = Buffer.from(name).toString()
    let before: Buffer | undefined
    return (key, value) => {
      if (before && Buffer.compare(before, key) >= 0) throw new DecodeError(`etcd bucket "${bucket}"`, 0, 'its keys are not in order')
      before = Buffer.from(key)
      if (bucket === 'key') verifyKeyValue(key, value)
      if (bucket === metaBucket && before.toString('latin1') === consistentIndex && value.length === 8)
        applied = Buffer.from(value.buffer, value.byteOffset, 8).readBigUInt64BE(0)
    }
  })
  if (applied === undefined) throw new DecodeError('etcd database', 0, 'it does not say what was applied to it')
  return applied
}

function verifyKeyValue(key: Uint8Array, value: Uint8Array): void {
  if (key.length < revisionLength || key.length > revisionLength + 1 || key[8] !== 0x5f)
    throw new DecodeError('etcd revision', 0, `${key.length} bytes`)
  let named = false
  for (const { id } of readProtobufFields(value)) {
    if (id > keyValue.last) throw new DecodeError('etcd key', 0, `field ${id}`)
    named ||= id === keyValue.key
  }
  if (!named) throw new DecodeError('etcd key', 0, 'it has no name')
}
