/** A snapshot of etcd's raft state (`member/snap/*.snap`; server/etcdserver/api/snap/snappb): its CRC-32C and its data. */
import { Crc32c } from '../crc32c.ts'
import { DecodeError } from '../decode-error.ts'
import { readProtobufFields } from './protobuf-fields.ts'

/** Throws DecodeError for a file whose data does not have its checksum. */
export function verifyRaftSnapshot(bytes: Uint8Array): void {
  let crc: number | undefined
  let data: Uint8Array | undefined
  for (const { id, value } of readProtobufFields(bytes)) {
    if (id === 1 && typeof value === 'bigint') crc = Number(BigInt.asUintN(32, value))
    if (id === 2 && typeof value !== 'bigint') data = value
  }
  if (crc === undefined || data === undefined) throw new DecodeError('raft snapshot', 0, 'it has no data')
  const sum = new Crc32c()
  sum.update(data)
  if (sum.value !== crc) throw new DecodeError('raft snapshot', 0, 'checksum is different')
}
