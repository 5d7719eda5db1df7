/**
 * Backups that this node keeps for other clusters. A backup is announced, then sent in one or more parts, and is listed when it is
 * whole. Each sender has a folder, one upload at a time, and limits for the size and the number of its backups.
 */
import type { Clock } from '../../../cosi/clock.ts'
import type { Logger } from '../../../cosi/log.ts'
import { ichor } from '../../../rpc/enums.ts'
import { RpcError } from '../../../rpc/status.ts'
import { TokenBucket } from '../../../timing/token-bucket.ts'
import { within } from '../../../timing/within.ts'
import { messageOf } from '../../../wire/error-message.ts'
import { appendChunks } from '../backup/files.ts'
import { type FolderFiles, FolderTarget } from '../backup/folder-target.ts'
import { newestFirst, outdated } from '../backup/retention.ts'
import type { BackupListing, StoredBackup, TargetFailure } from '../backup/target.ts'
import { type BackupName, backupNameOf, matchesName } from '../resources/backup-name.ts'
import type { SenderLimits, StoreSettings } from './settings.ts'

/** What the store uses of the machine. */
export interface ReceiveTools {
  readonly clock: Clock
  readonly log: Logger
  readonly files: FolderFiles
  /** The store as it is declared now. */
  settings(): StoreSettings | undefined
  /** Why a volume cannot be used; undefined when it is mounted. */
  missing(volume: string): string | undefined
  publish(event: { action: number; name: string; target: string; size: number; error: string }): void
}

/** A backup that a sender announces. */
export interface Offer {
  readonly name: string
  /** Bytes. */
  readonly size: number
  /** Hexadecimal. */
  readonly sha256: string
}

/** Milliseconds: without a message, and for one part of an upload. */
const [idleLimit, partLimit] = [60_000, 1_800_000]
/** Milliseconds that an offer waits for the end of the upload before. */
const endLimit = 2000
/** Uploads at once, of all senders. */
const mostUploads = 4
/** How far ahead the clock of a sender may be, in milliseconds. */
const clockDifference = 3_600_000

interface Sender {
  readonly folder: FolderTarget
  readonly at: string
  readonly rate: TokenBucket
  readonly hourly: number
  offered?: Offer | undefined
  /** Resolves when the upload that is under way has ended. */
  uploading?: Promise<void> | undefined
}

/** The store. All calls throw RpcError. */
export class ReceivedBackups {
  readonly #tools: ReceiveTools
  readonly #senders = new Map<string, Sender>()

  constructor(tools: ReceiveTools) {
    this.#tools = tools
  }

  /** Takes note of a backup; returns how much of it is here already. The same offer can be made any number of times. */
  async offer(from: string, offer: Offer, signal: AbortSignal): Promise<{ stored: boolean; offset: number }> {
    const { sender, limits } = this.#admitted(from)
    const named = checkedOffer(offer, limits, this.#tools.clock.now())
    const { backups } = await this.#contents(sender, signal)
    const known = backups.find(({ name }) => name === offer.name)
    if (known?.state === 'intact') return { stored: true, offset: known.size }
    const entry = { ...named, name: offer.name, size: offer.size, state: 'intact' as const }
    const kept = backups.filter(({ name }) => name !== offer.name)
    if (outdated([...kept, entry], limits.retention, this.#tools.clock.now()).includes(entry))
      refuse('FailedPrecondition', `"${offer.name}" is older than what is kept of this sender`)
    // An upload that was cut off ends a moment after its sender has noticed.
    if (sender.uploading) await Promise.race([sender.uploading, this.#tools.clock.sleep(endLimit, signal)])
    if (sender.uploading) refuse('Aborted', 'another upload of this sender is under way, try again')
    if (sender.offered?.name !== offer.name || sender.offered.sha256 !== offer.sha256) {
      if (!sender.rate.take(this.#tools.clock.elapsed()))
        refuse('ResourceExhausted', `${limits.hourly} new backups an hour are taken from this sender, try again later`)
    }
    sender.offered = offer
    return { stored: false, offset: this.#begin(sender, offer).offset }
  }

  /** Takes the bytes of an offered backup from an offset on; keeps what has come when they are cut off. */
  async append(from: string, { name, offset }: { name: string; offset: number }, chunks: AsyncIterable<Uint8Array>, signal: AbortSignal) {
    const { sender, limits } = this.#admitted(from)
    const offer = sender.offered
    if (offer?.name !== name) return refuse('FailedPrecondition', `"${name}" was not offered: offer it first`)
    if (sender.uploading) refuse('Aborted', 'another upload of this sender is under way, try again')
    if ([...this.#senders.values()].filter(({ uploading }) => uploading).length >= mostUploads)
      refuse('ResourceExhausted', 'too many uploads are under way, try again')
    const { promise, resolve: ended } = Promise.withResolvers<void>()
    sender.uploading = promise
    try {
      const begun = this.#begin(sender, offer)
      if (begun.offset !== offset)
        refuse('FailedPrecondition', `${begun.offset} bytes of "${name}" are here, not ${offset}: offer it again`)
      await appendChunks(this.#tools.files, begun.part, limited(chunks, offer.size - offset, this.#tools.clock))
      const size = this.#begin(sender, offer).offset
      if (size !== offer.size) refuse('Aborted', `${size} of ${offer.size} bytes of "${name}" have arrived: send the rest`)
      sender.offered = undefined
      if (!(await sender.folder.finish(offer, signal)))
        refuse('DataLoss', `"${name}" arrived with other contents than were announced: send it again`)
      this.#report('STORED', from, offer)
      await this.#prune(from, sender, limits, signal)
    } catch (error) {
      throw error instanceof RpcError ? error : new RpcError('Unavailable', `${what}: ${messageOf(error)}`)
    } finally {
      sender.uploading = undefined
      ended()
    }
  }

  /** The backups of one sender. */
  async of(from: string, signal: AbortSignal): Promise<{ backups: readonly StoredBackup[]; foreign: readonly string[] }> {
    return await this.#contents(this.#admitted(from).sender, signal)
  }

  /** The bytes of a backup of one sender. */
  async read(from: string, name: string, signal: AbortSignal): Promise<AsyncIterable<Uint8Array>> {
    const { sender } = this.#admitted(from)
    const { backups } = await this.#contents(sender, signal)
    if (!backups.some((backup) => backup.name === name)) refuse('NotFound', `there is no "${name}" of this sender here`)
    return sender.folder.read(name, signal)
  }

  /** The backups of all senders. */
  async list(signal: AbortSignal): Promise<BackupListing> {
    const backups: BackupListing['backups'][number][] = []
    const [failures, foreign]: [TargetFailure[], string[]] = [[], []]
    for (const from of this.#tools.settings()?.senders.keys() ?? []) {
      const target = receivedTarget(from)
      try {
        const held = await this.of(from, signal)
        backups.push(...held.backups.map((backup) => ({ ...backup, target })))
        foreign.push(...held.foreign.map((name) => `${target}/${name}`))
      } catch (error) {
        failures.push({ target, message: messageOf(error) })
      }
    }
    return { backups: newestFirst(backups), failures, foreign }
  }

  /** The bytes of a backup of any sender; undefined where there is no such backup. */
  async find(name: string, signal: AbortSignal): Promise<AsyncIterable<Uint8Array> | undefined> {
    const { backups } = await this.list(signal)
    const held = backups.find((backup) => backup.name === name && backup.state === 'intact')
    return held && (await this.read(held.target.slice(receivedTarget('').length), name, signal))
  }

  #admitted(from: string): { sender: Sender; limits: SenderLimits } {
    const settings = this.#tools.settings()
    if (!settings) return refuse('FailedPrecondition', 'this node keeps no backups of others: it has no EtcdBackupStoreConfig')
    const limits = settings.senders.get(from)
    if (!limits)
      return refuse(
        'PermissionDenied',
        `${from === '' ? 'a sender without a name' : `"${from}"`} is not among the senders of its EtcdBackupStoreConfig`,
      )
    const at = `${settings.folder}/${from}`
    const known = this.#senders.get(from)
    // What is under way ends before other settings act.
    if (known && (known.uploading || (known.at === at && known.hourly === limits.hourly))) return { sender: known, limits }
    const { files, clock } = this.#tools
    const missing = () => this.#tools.missing(settings.volume)
    const sender = {
      at,
      folder: new FolderTarget({ name: from, cluster: undefined, folder: at, missing }, files),
      hourly: limits.hourly,
      rate: new TokenBucket({ rate: limits.hourly / 3600, burst: limits.hourly }, clock.elapsed()),
    }
    this.#senders.set(from, sender)
    return { sender, limits }
  }

  async #contents({ folder }: Sender, signal: AbortSignal) {
    try {
      return await folder.contents(signal)
    } catch (error) {
      return refuse('Unavailable', messageOf(error))
    }
  }

  #begin({ folder }: Sender, offer: Offer): { part: string; offset: number } {
    try {
      return folder.begin(offer, { resume: true })
    } catch (error) {
      return refuse('ResourceExhausted', messageOf(error))
    }
  }

  async #prune(from: string, { folder }: Sender, { retention }: SenderLimits, signal: AbortSignal): Promise<void> {
    const { backups } = await folder.contents(signal)
    for (const { name, size } of outdated(backups, retention, this.#tools.clock.now())) {
      await folder.remove(name)
      this.#report('DELETED', from, { name, size })
    }
  }

  #report(action: 'STORED' | 'DELETED', from: string, { name, size }: Pick<Offer, 'name' | 'size'>): void {
    const { log, publish } = this.#tools
    log.info(action === 'STORED' ? 'etcd backup received' : 'received etcd backup deleted', { sender: from, name, size })
    publish({ action: ichor.v1.EtcdBackupEvent.Action[action], name, target: receivedTarget(from), size, error: '' })
  }
}

/** How the backups of a sender are listed on the node that keeps them. */
export const receivedTarget = (sender: string): string => `sender:${sender}`

const what = 'etcd backup store'

function refuse(status: ConstructorParameters<typeof RpcError>[0], detail: string): never {
  throw new RpcError(status, `${what}: ${detail}`)
}

function checkedOffer({ name, size, sha256 }: Offer, { maxSize }: SenderLimits, now: Date): BackupName {
  const named = backupNameOf(name)
  if (!named) return refuse('InvalidArgument', `${JSON.stringify(name.slice(0, 100))} is not the name of a backup`)
  if (!/^[0-9a-f]{64}$/.test(sha256) || !matchesName(name, sha256))
    refuse('InvalidArgument', `"${name}" does not begin its hash with that of its contents`)
  if (!Number.isSafeInteger(size) || size <= 0) refuse('InvalidArgument', `"${name}" has no size`)
  if (size > maxSize) refuse('ResourceExhausted', `"${name}" has ${size} bytes, at most ${maxSize} are taken from this sender`)
  if (named.taken.getTime() > now.getTime() + clockDifference)
    refuse('InvalidArgument', `"${name}" is from the future: compare the clocks of both clusters`)
  return named
}

/** Chunks of at most `length` bytes in all, each within the idle limit. */
async function* limited(chunks: AsyncIterable<Uint8Array>, length: number, clock: Clock): AsyncGenerator<Uint8Array, void> {
  const deadline = clock.deadline(partLimit)
  const iterator = chunks[Symbol.asyncIterator]()
  const idle = () => new RpcError('DeadlineExceeded', `${what}: nothing was sent within ${idleLimit / 1000} s`)
  let left = length
  for (let next = await within(iterator.next(), idleLimit, idle); !next.done; next = await within(iterator.next(), idleLimit, idle)) {
    left -= next.value.length
    if (left < 0) refuse('InvalidArgument', 'more bytes were sent than were announced')
    if (deadline.over) refuse('DeadlineExceeded', `one part takes at most ${partLimit / 60_000} minutes: send the rest in another`)
    yield next.value
  }
}
