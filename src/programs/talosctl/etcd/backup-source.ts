/** Where a restore gets its snapshot from: a file, or a backup in a target of a control plane; encrypted or not. */
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { backupNameOf, matchesName } from '../../../os/etcd/resources/backup-name.ts'
import { decrypt } from '../../../wire/age/file.ts'
import { DecodeError } from '../../../wire/decode-error.ts'
import type { Cluster } from '../cluster.ts'
import { describe, UsageError } from '../failure.ts'
import { readIdentities } from '../identities.ts'
import { HashMissing, type Snapshot, saveSnapshot, snapshotChunks } from './snapshot.ts'

const magic = 'age-encryption.org/'

/** Where a snapshot is saved, and how it is got. */
interface Saving {
  readonly path: string
  /** File with identities of age. */
  readonly identity: string | undefined
  /** Control planes that may have it. */
  readonly nodes: readonly string[]
  /** Whether it may be a database that was copied out of a data folder, without a hash. */
  readonly hashless: boolean
}

/** Saves the snapshot of a file or a listed backup, whole and verified, at `path`. */
export async function saveFrom(cluster: Cluster, from: string, { path, identity, nodes, hashless }: Saving): Promise<Snapshot> {
  const identities = identity === undefined ? [] : await readIdentities(identity)
  if (existsSync(from)) return saveFile(from, identities, { path, hashless })
  if (!backupNameOf(from)) throw new UsageError(`"${from}" is neither a file nor the name of a backup: see "talosctl etcd backup list"`)
  if (hashless) throw new UsageError('--skip-hash-check goes with a file: a backup has its hash in its name')
  const problems: string[] = []
  for (const node of nodes) {
    try {
      const chunks = fetched(cluster, node, from, identities.length === 0)
      return await saveSnapshot(asBytes(identities.length === 0 ? chunks : opened(checked(chunks, from), identities, from)), path)
    } catch (error) {
      problems.push(`${node}: ${describe(error).trim()}`)
    }
  }
  throw new Error(`no control plane gives "${from}": ${problems.join('; ')}`)
}

async function saveFile(
  from: string,
  identities: readonly Uint8Array[],
  { path, hashless }: Pick<Saving, 'path' | 'hashless'>,
): Promise<Snapshot> {
  try {
    return await saveSnapshot(asBytes(opened(snapshotChunks(from), identities, from)), path, { hashless })
  } catch (error) {
    if (!(error instanceof HashMissing)) throw error
    throw new UsageError(
      `"${from}" has no hash at its end: it is cut off; if it was copied out of a data directory of etcd, add --skip-hash-check`,
    )
  }
}

/** The bytes of a backup as a node stores them; verified by its name. */
export const downloaded = (cluster: Cluster, node: string | undefined, name: string): AsyncGenerator<Uint8Array, void> =>
  checked(fetched(cluster, node, name, false), name)

async function* fetched(cluster: Cluster, node: string | undefined, name: string, plain: boolean): AsyncGenerator<Uint8Array, void> {
  for await (const { bytes } of cluster.stream('ichor.v1.EtcdBackupService/Fetch', { name, decrypt: plain }, { node })) yield bytes
}

/** Fails at the end unless the bytes have the hash in the name. */
async function* checked(chunks: AsyncIterable<Uint8Array>, name: string): AsyncGenerator<Uint8Array, void> {
  const hash = createHash('sha256')
  for await (const bytes of chunks) {
    hash.update(bytes)
    yield bytes
  }
  if (!matchesName(name, hash.digest('hex'))) throw new Error('the backup is damaged: its contents are not those of its name')
}

/** The contents of a file: decrypted where it is encrypted. */
async function* opened(
  chunks: AsyncGenerator<Uint8Array, void>,
  identities: readonly Uint8Array[],
  from: string,
): AsyncGenerator<Uint8Array, void> {
  const first = await chunks.next()
  const all = async function* () {
    if (!first.done) yield first.value
    yield* chunks
  }
  const encrypted = !first.done && Buffer.from(first.value.subarray(0, magic.length)).toString('latin1') === magic
  if (!encrypted) return yield* all()
  if (identities.length === 0) throw new UsageError(`"${from}" is encrypted: give the identity of one of its recipients with --identity`)
  try {
    yield* decrypt(all(), identities)
  } catch (error) {
    if (error instanceof DecodeError) throw new Error(`decrypt "${from}": ${error.message}`)
    throw error
  }
}

async function* asBytes(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<{ bytes: Uint8Array }, void> {
  for await (const bytes of chunks) yield { bytes }
}
