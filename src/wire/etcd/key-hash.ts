/** The hash of all keys of a member up to its last revision, as the members of etcd compare theirs (server/storage/mvcc/hash.go). */
import { BoltDatabase, type ReadAt } from '../bolt.ts'
import { Crc32c } from '../crc32c.ts'
import { DecodeError } from '../decode-error.ts'
import { readProtobufFields } from './protobuf-fields.ts'

/** The hash of the keys up to a revision. */
export interface KeyHash {
  readonly hash: number
  readonly revision: number
  /** The revision up to which history was discarded: hashes of different ones are not comparable. */
  readonly compacted: number
}

/** Length of a revision as a key; one that deletes has a `t` behind it. */
const revisionLength = 17

/** What the first pass finds. */
interface Survey {
  last: bigint
  scheduled: bigint
  finished: bigint
  /** Key → its last revision; none for a key that was deleted. */
  readonly live: Map<string, string>
}

/** Computes the hash; undefined while a discarding of history is not complete. Throws DecodeError for what is not etcd's database. */
export function keyHash(read: ReadAt): KeyHash | undefined {
  const database = new BoltDatabase(read)
  const { last, scheduled, finished, live } = surveyOf(database)
  if (scheduled !== finished) return undefined
  const kept = new Set(live.values())
  const sum = new Crc32c()
  sum.update(Buffer.from('key'))
  database.eachEntry((name) => {
    if (Buffer.from(name).toString() !== 'key') return () => {}
    return (key, value) => {
      const revision = mainOf(key)
      const deletes = key.length > revisionLength
      if (revision <= finished && kept.size > 0 && !kept.has(textOf(key))) return
      if (revision === finished && deletes) return
      sum.update(key)
      sum.update(value)
    }
  })
  return { hash: sum.value, revision: Number(last), compacted: Number(finished) }
}

function surveyOf(database: BoltDatabase): Survey {
  const survey: Survey = { last: 1n, scheduled: 0n, finished: 0n, live: new Map() }
  database.eachEntry((name) => {
    const bucket = Buffer.from(name).toString()
    return (key, value) => {
      if (bucket === 'meta') {
        const what = textOf(key)
        if (what === 'scheduledCompactRev') survey.scheduled = mainOf(value)
        if (what === 'finishedCompactRev') survey.finished = mainOf(value)
      }
      if (bucket !== 'key') return
      survey.last = mainOf(key)
      const own = nameOf(value)
      if (key.length > revisionLength) survey.live.delete(own)
      else survey.live.set(own, textOf(key))
    }
  })
  if (survey.finished > survey.last) survey.last = survey.finished
  return survey
}

const textOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString('latin1')

function mainOf(revision: Uint8Array): bigint {
  if (revision.length < revisionLength) throw new DecodeError('etcd revision', 0, `${revision.length} bytes`)
  return Buffer.from(revision.buffer, revision.byteOffset, revision.length).readBigUInt64BE(0)
}

/** The key of a `mvccpb.KeyValue`. */
function nameOf(value: Uint8Array): string {
  for (const { id, value: field } of readProtobufFields(value)) if (id === 1 && typeof field !== 'bigint') return textOf(field)
  return ''
}
