/**
 * The backups of one node: taken when they are due and no other control plane has taken one, stored in every target, and deleted
 * when they are outdated. A target that fails is tried again with the same backup until the next one is taken.
 */
import * as v from 'valibot'
import type { Deadline } from '../../../cosi/clock.ts'
import type { Logger } from '../../../cosi/log.ts'
import type { SpecOf } from '../../../cosi/resource.ts'
import { ichor } from '../../../rpc/enums.ts'
import { RpcError } from '../../../rpc/status.ts'
import { within } from '../../../timing/within.ts'
import { messageOf } from '../../../wire/error-message.ts'
import type { EtcdBackupStatus } from '../resources/etcd-backup.ts'
import { BackupClaimed, withClaim } from './claim.ts'
import { newestFirst, outdated } from './retention.ts'
import type { BackupSettings } from './settings.ts'
import { scratchFolder, type TakeTools, takeBackup } from './take.ts'
import type { BackupListing, BackupResult, BackupTarget, StoredBackup, TakenBackup, TargetContents, TargetFailure } from './target.ts'

/** What backups use of the machine. */
export interface BackupTools extends TakeTools {
  readonly log: Logger
  publish(event: { action: number; name: string; target: string; size: number; error: string }): void
}

type Status = SpecOf<typeof EtcdBackupStatus>
type LastSuccess = NonNullable<Status['lastSuccess']>

/** The last backup of the cluster is recorded here, for the control planes that did not take it. */
const recordKey = 'ichor:etcd:backup:last'
const record = v.object({ time: v.string(), name: v.string(), node: v.string(), revision: v.number(), size: v.number() })

/** Milliseconds: for a whole backup, for one target, and for the contents of one target. */
const [takeLimit, storeLimit, listLimit] = [1_800_000, 1_800_000, 60_000]
/** Milliseconds until a failed attempt is repeated; doubled up to the longest. */
const [firstRetry, longestRetry] = [60_000, 600_000]
/** Milliseconds after which the targets are listed again. */
const listInterval = 600_000
/** The backups of one node. */
export class Backups {
  readonly #tools: BackupTools
  #settings: BackupSettings | undefined
  #last: LastSuccess | undefined
  #lastError: Status['lastError']
  #running = false
  #failures = 0
  #retry: Deadline | undefined
  #pending: { readonly backup: TakenBackup; targets: readonly BackupTarget[] } | undefined
  #listing: { readonly found: BackupListing; readonly until: Deadline } | undefined

  constructor(tools: BackupTools) {
    this.#tools = tools
  }

  /** The settings in force; undefined while no backups are declared. */
  get settings(): BackupSettings | undefined {
    return this.#settings
  }

  /** Takes other settings into use. */
  configure(settings: BackupSettings | undefined): void {
    this.#settings = settings
    this.#pending = undefined
    this.#listing = undefined
    this.#retry = undefined
    this.#failures = 0
    this.#lastError = undefined
  }

  /** What the targets held when they were listed last. */
  get listing(): BackupListing {
    return this.#listing?.found ?? { backups: [], failures: [], foreign: [] }
  }

  /** When the next backup is due: at once when there is none. */
  due(settings: BackupSettings): Date {
    return this.#last ? settings.schedule.next(new Date(this.#last.time)) : this.#tools.clock.now()
  }

  status(settings: BackupSettings): Status {
    return {
      state: this.#running ? 'running' : this.#lastError ? 'failed' : 'waiting',
      ...(this.#last && { lastSuccess: this.#last }),
      ...(this.#lastError && { lastError: this.#lastError }),
      nextRun: this.due(settings).toISOString(),
      foreign: [...this.listing.foreign],
    }
  }

  /** Does what is due; `changed` is called when it begins. Rejects when etcd does not answer. */
  async round(node: string, signal: AbortSignal, changed: () => void): Promise<void> {
    const settings = this.#settings
    if (!settings || this.#running) return
    await this.#readRecord()
    const { clock } = this.#tools
    if (!(this.#retry?.over ?? true)) return
    if (this.due(settings) <= clock.now()) {
      const taking = this.#scheduled(settings, node, signal)
      changed()
      await taking
    } else if (this.#pending) await this.#exclusive(() => this.#storePending(settings, signal))
    if (!this.#listing || this.#listing.until.over) await this.list(signal)
  }

  /** Takes a backup now. Rejects while one is being taken. */
  async create(node: string, signal: AbortSignal): Promise<BackupResult> {
    const settings = this.#settings
    if (!settings) throw new RpcError('FailedPrecondition', 'etcd backup: none is declared: apply an EtcdBackupConfig first')
    if (this.#running) throw new RpcError('Aborted', 'etcd backup: this node takes one at the moment, try again')
    try {
      return await this.#exclusive(() => this.#run(settings, node, { signal, unclaimedWhenFull: true }))
    } catch (error) {
      if (error instanceof BackupClaimed) throw new RpcError('Aborted', `etcd backup: ${error.message}, try again`)
      throw error
    }
  }

  /** What the targets hold now. */
  async list(signal: AbortSignal): Promise<BackupListing> {
    const targets = this.#settings?.targets ?? []
    const failures: TargetFailure[] = []
    const held = await Promise.all(
      targets.map(async (target) => {
        try {
          const contents = await this.#contentsOf(target, signal)
          for (const message of contents.problems ?? []) failures.push({ target: target.name, message })
          return { target: target.name, ...contents }
        } catch (error) {
          failures.push({ target: target.name, message: messageOf(error) })
          return { target: target.name, backups: [], foreign: [] }
        }
      }),
    )
    const found = {
      backups: newestFirst(held.flatMap(({ target, backups }) => backups.map((backup) => ({ ...backup, target })))),
      failures,
      foreign: held.flatMap(({ target, foreign }) => foreign.map((name) => `${target}/${name}`)),
    }
    if (this.#settings?.targets === targets) this.#listing = { found, until: this.#tools.clock.deadline(listInterval) }
    return found
  }

  /** A target that holds a backup: where it is known to be intact, else where it was not read, else where it is damaged. */
  async find(name: string, signal: AbortSignal): Promise<{ target: BackupTarget; backup: StoredBackup }> {
    const { backups, failures } = await this.list(signal)
    const named = backups.filter((backup) => backup.name === name)
    const backup = named.find(({ state }) => state === 'intact') ?? named.find(({ state }) => state === 'unchecked') ?? named[0]
    const target = this.#settings?.targets.find((one) => one.name === backup?.target)
    if (backup && target) return { target, backup }
    const failed = failures.map(({ target, message }) => `; target ${target} does not answer: ${message}`).join('')
    throw new RpcError('NotFound', `etcd backup: no target of this node has "${name}"${failed}`)
  }

  async #readRecord(): Promise<void> {
    const client = this.#tools.local()
    try {
      this.#last = recordOf(await client.get(recordKey))
    } finally {
      client.close()
    }
  }

  async #scheduled(settings: BackupSettings, node: string, signal: AbortSignal): Promise<void> {
    try {
      await this.#exclusive(() => this.#run(settings, node, { signal, unlessTaken: true }))
    } catch (error) {
      if (error instanceof BackupClaimed || signal.aborted) return
      this.#failed('', error)
    }
  }

  async #exclusive<T>(act: () => Promise<T>): Promise<T> {
    this.#running = true
    try {
      return await act()
    } finally {
      this.#running = false
    }
  }

  async #run(
    settings: BackupSettings,
    node: string,
    { signal, unlessTaken, unclaimedWhenFull }: { signal: AbortSignal; unlessTaken?: boolean; unclaimedWhenFull?: boolean },
  ): Promise<BackupResult> {
    const { clock } = this.#tools
    const client = this.#tools.local()
    const act = async (holding: AbortSignal) => {
      await this.#readRecord()
      if (unlessTaken && this.due(settings) > clock.now()) throw new BackupClaimed('another control plane took it')
      return await this.#take(settings, node, AbortSignal.any([holding, AbortSignal.timeout(takeLimit)]))
    }
    try {
      return await withClaim({ client, node, clock }, act, signal)
    } catch (error) {
      // An etcd that has reached its quota takes no claims, and is worth a backup all the more.
      if (!unclaimedWhenFull || !(error instanceof RpcError) || error.status !== 'ResourceExhausted') throw error
      return await act(signal)
    } finally {
      client.close()
    }
  }

  async #take(settings: BackupSettings, node: string, signal: AbortSignal): Promise<BackupResult> {
    const { log } = this.#tools
    this.#pending = undefined
    const backup = await takeBackup(this.#tools, settings, signal)
    log.info('etcd backup taken', { name: backup.name, revision: backup.revision, size: backup.size })
    this.#pending = { backup, targets: settings.targets }
    const failures = await this.#storePending(settings, signal)
    const stored = settings.targets.map(({ name }) => name).filter((name) => !failures.some(({ target }) => target === name))
    if (stored.length > 0) await this.#putRecord({ ...backup, node })
    return { backup, stored, failures }
  }

  async #putRecord({ taken, name, node, revision, size }: TakenBackup & { node: string }): Promise<void> {
    this.#last = { time: taken.toISOString(), name, node, revision, size }
    const client = this.#tools.local()
    try {
      await client.put(recordKey, JSON.stringify(this.#last))
    } catch (error) {
      // Another control plane takes one more.
      this.#tools.log.warn('recording the etcd backup failed', { name, error: messageOf(error) })
    } finally {
      client.close()
    }
  }

  /** Stores the backup in the targets that do not have it yet. */
  async #storePending(settings: BackupSettings, signal: AbortSignal): Promise<TargetFailure[]> {
    const pending = this.#pending
    if (!pending) return []
    const { backup } = pending
    const failures: TargetFailure[] = []
    for (const target of pending.targets) {
      try {
        await target.store(backup, AbortSignal.any([signal, AbortSignal.timeout(storeLimit)]))
        await this.#prune(settings, target, signal)
      } catch (error) {
        failures.push({ target: target.name, message: messageOf(error) })
      }
    }
    pending.targets = pending.targets.filter(({ name }) => failures.some(({ target }) => target === name))
    const { log, publish, files } = this.#tools
    for (const { target, message } of failures) this.#failed(target, message, backup.name)
    if (failures.length === 0) {
      this.#pending = undefined
      this.#failures = 0
      this.#retry = undefined
      if (this.#lastError) log.resolved('etcd backup stored everywhere', { name: backup.name })
      this.#lastError = undefined
      publish({ action: ichor.v1.EtcdBackupEvent.Action.STORED, name: backup.name, target: '', size: backup.size, error: '' })
      await files.remove(scratchFolder)
    }
    this.#listing = undefined
    return failures
  }

  /** Deletes what is outdated in a target that has just stored a backup. */
  async #prune({ retention }: BackupSettings, target: BackupTarget, signal: AbortSignal): Promise<void> {
    if (target.prunesItself) return
    const { backups } = await this.#contentsOf(target, signal)
    for (const { name, size } of outdated(backups, retention, this.#tools.clock.now())) {
      await target.remove(name, AbortSignal.any([signal, AbortSignal.timeout(listLimit)]))
      this.#tools.log.info('etcd backup deleted', { target: target.name, name })
      this.#tools.publish({ action: ichor.v1.EtcdBackupEvent.Action.DELETED, name, target: target.name, size, error: '' })
    }
  }

  #contentsOf(target: BackupTarget, signal: AbortSignal): Promise<TargetContents> {
    const limited = AbortSignal.any([signal, AbortSignal.timeout(listLimit)])
    return within(target.contents(limited), listLimit, () => new Error(`no answer within ${listLimit / 1000} s`))
  }

  #failed(target: string, error: unknown, name = ''): void {
    const { clock, log, publish } = this.#tools
    const message = messageOf(error)
    this.#failures++
    const delay = Math.min(firstRetry * 2 ** Math.min(this.#failures - 1, 10), longestRetry)
    this.#retry = clock.deadline(delay)
    this.#lastError = { time: clock.now().toISOString(), target, message }
    log.warn('etcd backup failed, will be retried', {
      ...(target && { target }),
      ...(name && { name }),
      retry_in: delay / 1000,
      error: message,
    })
    publish({ action: ichor.v1.EtcdBackupEvent.Action.FAILED, name, target, size: 0, error: message })
  }
}

/** The last backup; undefined when none is recorded, or something else is there: then one is taken. */
function recordOf(text: string | undefined): LastSuccess | undefined {
  try {
    return text === undefined ? undefined : v.parse(record, JSON.parse(text))
  } catch {
    return undefined
  }
}
