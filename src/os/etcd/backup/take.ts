/** Takes a backup: a snapshot of this node's member, verified by its hash and by a restore, and encrypted. */
import { createHash } from 'node:crypto'
import type { Clock } from '../../../cosi/clock.ts'
import { RpcError } from '../../../rpc/status.ts'
import { within } from '../../../timing/within.ts'
import { encrypt } from '../../../wire/age/file.ts'
import { SnapshotHash } from '../../../wire/etcd/snapshot-hash.ts'
import type { Kernel } from '../../kernel.ts'
import type { EtcdClient } from '../client.ts'
import { backupName } from '../resources/backup-name.ts'
import { chunksOf, writeChunks } from './files.ts'
import type { TakenBackup } from './target.ts'

/** What taking a backup uses of the machine. */
export interface TakeTools {
  readonly clock: Clock
  readonly files: Pick<Kernel['files'], 'mkdirAll' | 'openWrite' | 'readSlice' | 'remove' | 'statfs' | 'syncFile'>
  /** A client of this node's member. */
  local(): EtcdClient
  /** Runs `etcdutl` with these arguments and resolves to its output; rejects with its output when it fails. */
  etcdutl(args: readonly string[], signal: AbortSignal): Promise<string>
}

/** What is taken. */
export interface TakeOptions {
  /** Digits of the cluster. */
  readonly cluster: string
  /** Public keys, 32 bytes each. */
  readonly recipients: readonly Uint8Array[]
}

/** Where backups are made: on the disk of etcd, since they are as secret as its data until they are encrypted. */
export const scratchFolder = '/var/lib/etcd-backup'

/** Milliseconds after which a member that sends nothing counts as gone. */
const idleLimit = 60_000
/** Room beyond the copies, in bytes. */
const reserve = 64 << 20
/** Copies of the database that exist at once: the snapshot, and either what is restored from it or what is encrypted. */
const copies = 2

/** Takes a backup. Nothing but the encrypted file is left in the scratch folder, and that only on success. */
export async function takeBackup(tools: TakeTools, { cluster, recipients }: TakeOptions, signal: AbortSignal): Promise<TakenBackup> {
  const { files, clock } = tools
  await files.remove(scratchFolder)
  files.mkdirAll(scratchFolder, { mode: 0o700 })
  const client = tools.local()
  try {
    await checkSpace(tools, client)
    const snapshot = `${scratchFolder}/snapshot.db`
    const taken = clock.now()
    await writeChunks(files, snapshot, hashed(client.snapshot(signal), signal))
    const { revision, keys } = await verify(tools, client, snapshot, signal)
    const encrypted = `${scratchFolder}/backup.age`
    const sum = createHash('sha256')
    const size = await writeChunks(files, encrypted, summed(encrypt(chunksOf(files, snapshot, signal), recipients), sum))
    await files.remove(snapshot)
    const sha256 = sum.digest('hex')
    const named = { cluster, taken, revision, hash: sha256.slice(0, 16) }
    return { ...named, name: backupName(named), path: encrypted, size, sha256, keys }
  } catch (error) {
    await files.remove(scratchFolder)
    throw error
  } finally {
    client.close()
  }
}

async function checkSpace({ files }: TakeTools, client: EtcdClient): Promise<void> {
  const { dbSize } = await client.status()
  const needed = copies * dbSize + reserve
  const { available } = files.statfs(scratchFolder)
  if (available < needed)
    throw new Error(`"${scratchFolder}" has ${megabytes(available)} of space left, a backup of etcd needs ${megabytes(needed)}`)
}

/** The chunks of a snapshot; fails at the end unless its hash is right, and when no chunk comes for a while. */
async function* hashed(chunks: AsyncGenerator<Uint8Array, void>, signal: AbortSignal): AsyncGenerator<Uint8Array, void> {
  const hash = new SnapshotHash()
  const idle = () => new Error(`etcd sent nothing of its snapshot within ${idleLimit / 1000} s`)
  try {
    for (let next = await within(chunks.next(), idleLimit, idle); !next.done; next = await within(chunks.next(), idleLimit, idle)) {
      signal.throwIfAborted()
      hash.update(next.value)
      yield next.value
    }
  } finally {
    // A stream that hangs is not waited for.
    chunks.return().catch(() => {})
  }
  const result = hash.finish()
  if (result.state === 'missing') throw new Error(`etcd sent a snapshot of ${result.bytes} bytes that is cut off`)
  if (result.state === 'different')
    throw new Error(`etcd sent a damaged snapshot: its hash is ${result.computed}, expected ${result.expected}`)
}

async function* summed(chunks: AsyncIterable<Uint8Array>, sum: { update(bytes: Uint8Array): unknown }): AsyncGenerator<Uint8Array, void> {
  for await (const bytes of chunks) {
    sum.update(bytes)
    yield bytes
  }
}

/** Restores the snapshot into a scratch folder, and compares the keys in it with those that the member has at its revision. */
async function verify(
  { etcdutl, files }: TakeTools,
  client: EtcdClient,
  snapshot: string,
  signal: AbortSignal,
): Promise<{ revision: number; keys: number }> {
  const folder = `${scratchFolder}/restored`
  const status = numbersIn(await etcdutl(['snapshot', 'status', snapshot], signal), ['revision', 'totalKey'])
  const peer = 'http://127.0.0.1:2380'
  const flags = ['--name=scratch', `--initial-cluster=scratch=${peer}`, `--initial-advertise-peer-urls=${peer}`, `--data-dir=${folder}`]
  await etcdutl(['snapshot', 'restore', snapshot, ...flags], signal)
  const restored = numbersIn(await etcdutl(['hashkv', `${folder}/member/snap/db`], signal), ['hash', 'hashRevision', 'compactRevision'])
  await files.remove(folder)
  if (restored.hashRevision !== status.revision)
    throw new Error(`the snapshot has revision ${status.revision}, what was restored from it ${restored.hashRevision}`)
  const live = await hashAt(client, status.revision)
  // A member that has discarded more of its history meanwhile has another hash.
  if (live?.compactRevision === restored.compactRevision && live.hash !== restored.hash)
    throw new Error(
      `what was restored from the snapshot differs from etcd at revision ${status.revision}: hash ${restored.hash}, expected ${live.hash}`,
    )
  return { revision: status.revision, keys: status.totalKey }
}

/** The hash of the member's keys at a revision; undefined when it has discarded that revision meanwhile. */
async function hashAt(client: EtcdClient, revision: number) {
  try {
    return await client.hashKv(revision)
  } catch (error) {
    if (error instanceof RpcError && error.status === 'OutOfRange') return undefined
    throw error
  }
}

/** Numbers of the JSON object that etcdutl prints on a line. */
function numbersIn<const K extends readonly string[]>(output: string, keys: K): Record<K[number], number> {
  const line = output.split('\n').find((one) => one.startsWith('{'))
  const read: Record<string, unknown> = line === undefined ? {} : JSON.parse(line)
  const numbers = keys.map((key) => [key, read[key]] as const)
  const wrong = numbers.find(([, value]) => typeof value !== 'number')
  if (wrong) throw new Error(`etcdutl printed no "${wrong[0]}"`)
  return Object.fromEntries(numbers) as Record<K[number], number>
}

const megabytes = (bytes: number): string => `${Math.round(bytes / 1024 / 1024)} MiB`
