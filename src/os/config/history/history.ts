/**
 * The configurations that were applied to this machine: the last ten, with time, author, mode and outcome. Kept in one file on
 * STATE that is replaced as a whole; it holds the configurations' secrets, so only root may read it.
 */
import * as v from 'valibot'
import type { Logger } from '../../../cosi/log.ts'
import type { Kernel } from '../../kernel.ts'
import { applyModeNames } from '../apply/mode.ts'

/** Where the history is kept. */
export const historyPath = '/system/state/config-history.json'

/** How many configurations are kept. */
export const remembered = 10

const Caller = v.object({ roles: v.array(v.string()), peer: v.string(), actor: v.string() })

/** Why configurations are reverted, in words. */
export const revertReasons = {
  expired: 'its time was over',
  unconfirmed: 'it was not confirmed in time',
  unreached: 'the machine was not reached after it',
  uninstallable: 'the machine could not be installed with it',
  replaced: 'another one was applied',
  restarted: 'the machine restarted',
  unkept: 'the machine restarted before it was kept',
} as const

/** Why a configuration was reverted. */
export type RevertCause = keyof typeof revertReasons

const revertCauses = Object.keys(revertReasons) as RevertCause[]

const Entry = v.object({
  id: v.number(),
  time: v.string(),
  /** `found` for one that was there before the history started, else the mode it was applied with. */
  mode: v.picklist(['found', ...applyModeNames]),
  by: Caller,
  /** The entry that this one restored. */
  restored: v.optional(v.number()),
  outcome: v.optional(v.picklist(['pending', 'confirmed', 'reverted'])),
  /** Why it was reverted. */
  cause: v.optional(v.picklist(revertCauses)),
  /** The same in words. */
  reason: v.optional(v.string()),
  decided: v.optional(v.string()),
  text: v.string(),
})

const File = v.object({ entries: v.array(Entry) })

/** The author of a configuration: roles, address and name as far as they are known. */
export type Caller = v.InferOutput<typeof Caller>

/** One configuration that was applied. */
export type HistoryEntry = v.InferOutput<typeof Entry>

/** The machine itself as the author. */
export const itself: Caller = { roles: [], peer: '', actor: 'machine' }

type Files = Pick<Kernel['files'], 'readTextIfThere' | 'writeAtomic'>

/** The history of one machine; every call reads and writes the file, of which there is only one. */
export class ConfigHistory {
  constructor(
    readonly files: Files,
    readonly log: Logger,
  ) {}

  /** All entries, oldest first. */
  list(): HistoryEntry[] {
    const text = this.files.readTextIfThere(historyPath)
    if (text === undefined) return []
    try {
      return v.parse(File, JSON.parse(text)).entries
    } catch (error) {
      this.log.error('configuration history damaged, starting a new one', { path: historyPath, error })
      return []
    }
  }

  /** One entry by its number. */
  get(id: number): HistoryEntry | undefined {
    return this.list().find((entry) => entry.id === id)
  }

  /** Adds a configuration and resolves to its number; the oldest entries are dropped. */
  async add(entry: Omit<HistoryEntry, 'id'>): Promise<number> {
    const entries = this.list()
    const id = (entries.at(-1)?.id ?? 0) + 1
    await this.#write([...entries, { id, ...entry }])
    return id
  }

  /** Records the outcome of an entry; a reverted one has a cause. */
  async decide(id: number, outcome: 'confirmed' | 'reverted', decided: Date, cause?: RevertCause): Promise<void> {
    const decision = { outcome, decided: decided.toISOString(), cause, reason: cause && revertReasons[cause] }
    await this.#write(this.list().map((entry) => (entry.id === id ? { ...entry, ...decision } : entry)))
  }

  /** Reverts pending entries without a current trial: the machine stopped before they took effect. */
  async decideLost(pending: number | undefined, decided: Date): Promise<void> {
    for (const { id, outcome } of this.list())
      if (outcome === 'pending' && id !== pending) await this.decide(id, 'reverted', decided, 'unkept')
  }

  #write(entries: readonly HistoryEntry[]): Promise<void> {
    return this.files.writeAtomic(historyPath, JSON.stringify({ entries: entries.slice(-remembered) }), { mode: 0o600 })
  }
}
