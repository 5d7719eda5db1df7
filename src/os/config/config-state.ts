/**
 * The configuration on disk and in the resources `v1alpha1` (in force) and `persistent` (kept), and the trial between them. This is
 * the only writer of the three, and of the history and the marker beside them. The table of transitions is in trial/state.ts.
 */
import { SerialQueue } from '../../timing/serial-queue.ts'
import type { Machine } from '../area.ts'
import { ConfigContainer } from './container.ts'
import { type ConfigHistory, historyPath, type RevertCause, revertReasons } from './history/history.ts'
import { keepConfig, previousStatePath, statePath } from './keep.ts'
import { MachineConfig } from './resources/machine-config.ts'
import { isWhole } from './sources/search.ts'
import { digest, noteInterval, readTrial, removeTrial, resumed, type Trial, trialPath, writeTrial } from './trial/marker.ts'
import { type Step, type TrialState, transition, type Which } from './trial/state.ts'

/** A trial, the configuration on trial, its start and end by the monotonic clock, and what was in force before it. */
interface Running {
  readonly trial: Trial
  readonly text: string
  readonly began: number
  readonly ends: number
  readonly before?: string | undefined
  /** When the remaining time was last recorded. */
  readonly noted: number
}

/** The arguments of a step. */
export interface StepOptions {
  /** The submitted configuration. */
  readonly text?: string
  /** It takes effect with the next start only. */
  readonly deferred?: boolean
  /** The trial that starts. */
  readonly trial?: Trial
  /** Why the current trial ends. */
  readonly cause?: RevertCause
}

type Dependencies = Pick<Machine, 'store' | 'runtime' | 'log'> & { kernel: Pick<Machine['kernel'], 'files'> }

const expired: Record<Trial['kind'], RevertCause> = { try: 'expired', confirm: 'unconfirmed', connectivity: 'unreached' }

/** Everything about the configuration that is on STATE. */
export const configPaths: readonly string[] = [statePath, previousStatePath, trialPath, historyPath]

/** The configuration of one machine over time. */
export class ConfigState {
  #running?: Running | undefined
  readonly #queue = new SerialQueue()
  readonly #onTrial = new Set<() => void>()

  constructor(
    readonly machine: Dependencies,
    readonly history: ConfigHistory,
    /** Monotonic milliseconds. */
    readonly elapsed: () => number,
  ) {}

  /** The kind of the current trial. */
  get state(): TrialState {
    return this.#running?.trial.kind ?? 'none'
  }

  /** The current trial. */
  get trial(): Trial | undefined {
    return this.#running?.trial
  }

  /** The configuration in force. */
  get inForce(): string | undefined {
    return this.machine.store.get(MachineConfig, 'v1alpha1')?.spec
  }

  /** The last permanent configuration; through a chain of trials always the one before the first of them. */
  get stays(): string | undefined {
    return this.#running?.trial.before ?? this.machine.store.get(MachineConfig, 'persistent')?.spec ?? this.inForce
  }

  /** Milliseconds left of the trial; undefined when there is none, or when its time starts with the next boot. */
  left(): number | undefined {
    const running = this.#running
    return running && !running.trial.waits ? Math.max(0, Math.ceil(running.ends - this.elapsed())) : undefined
  }

  /** Milliseconds since the configuration on trial is in force, in this run of the machine; undefined before it is. */
  get since(): number | undefined {
    const running = this.#running
    return running && !running.trial.waits ? this.elapsed() - running.began : undefined
  }

  /** Milliseconds until `tick` is due. */
  nextTick(): number | undefined {
    const left = this.left()
    return left === undefined || !this.#running || this.state === 'try' ? left : Math.min(left, noteInterval(this.#running.trial))
  }

  /** Calls back whenever a trial starts. */
  onTrial(callback: () => void): void {
    this.#onTrial.add(callback)
  }

  /** Runs operations one after the other, in the order they came. */
  inTurn<T>(act: () => Promise<T>): Promise<T> {
    return this.#queue.run(act)
  }

  /** Applies a configuration that the machine found itself; a whole one is kept. */
  found(text: string): void {
    this.machine.store.put(MachineConfig, 'v1alpha1', text)
    if (isWhole(ConfigContainer.parse(text))) this.machine.store.put(MachineConfig, 'persistent', text)
  }

  /** Writes the configuration to keep: STATE may have been mounted over what was written before. */
  keep(): Promise<void> {
    return this.inTurn(async () => {
      const kept = this.machine.store.get(MachineConfig, 'persistent')?.spec
      if (kept === undefined) return
      if (await keepConfig(this.machine.kernel.files, kept)) this.machine.log.info('machine configuration kept')
    })
  }

  /** Everything on STATE, or in its folder while it is not mounted yet. */
  files(): ReadonlyMap<string, string> {
    const { files } = this.machine.kernel
    return new Map(
      configPaths.flatMap((path) => [files.readTextIfThere(path)].flatMap((text) => (text === undefined ? [] : [[path, text]]))),
    )
  }

  /** Writes the previous content, from memory, to the STATE that has been mounted over it. */
  carry(known: ReadonlyMap<string, string>): Promise<void> {
    return this.inTurn(async () => {
      // The configuration comes last: where the machine stops in between, it has none.
      for (const path of configPaths.toReversed()) {
        const text = known.get(path)
        if (text !== undefined) await this.machine.kernel.files.writeAtomic(path, text, { mode: 0o600 })
      }
    })
  }

  /** Removes the configuration that the machine could not be installed with: none is in force, and none is kept. */
  withdraw(): Promise<void> {
    return this.inTurn(async () => {
      const { kernel, store, runtime } = this.machine
      const withdrawn = this.inForce
      this.#running = undefined
      for (const id of ['v1alpha1', 'persistent']) if (store.get(MachineConfig, id)) store.destroy(MachineConfig, id)
      for (const path of [statePath, previousStatePath, trialPath])
        if (kernel.files.readTextIfThere(path) !== undefined) await kernel.files.remove(path)
      const entry = this.history.list().findLast(({ text }) => text === withdrawn)
      if (entry) await this.#note(() => this.history.decide(entry.id, 'reverted', runtime.now(), 'uninstallable'))
    })
  }

  /**
   * Decides at boot what the marker left open. Called before any configuration is read; resolves to the configuration to start with
   * if the disk could not be updated.
   */
  restart(): Promise<string | undefined> {
    return this.inTurn(async () => {
      const { kernel, log, runtime } = this.machine
      const trial = readTrial(this.machine)
      await this.#note(() => this.history.decideLost(trial?.entry, runtime.now()))
      const kept = kernel.files.readTextIfThere(statePath)
      const rest = trial && resumed(trial)
      const isKept = kept !== undefined && digest(kept) === trial?.after
      if (rest && isKept && rest.left > 0 && transition(rest.kind, 'restart')?.kept === 'trial') {
        this.#begin(rest, kept)
        log.warn('machine configuration on trial', { id: rest.entry, kind: rest.kind, left: seconds(rest.left) })
        return this.#attempt(() => writeTrial(this.machine, rest)).then(() => undefined)
      }
      const reverted = await this.#attempt(async () => {
        if (trial) await keepConfig(kernel.files, trial.before)
        await removeTrial(this.machine)
      })
      if (!trial) return undefined
      const cause = trial.kind === 'try' ? 'restarted' : isKept ? expired[trial.kind] : 'unkept'
      log.warn('machine configuration on trial reverted', { id: trial.entry, reason: revertReasons[cause] })
      await this.#note(() => this.history.decide(trial.entry, 'reverted', runtime.now(), cause))
      return reverted ? undefined : trial.before
    })
  }

  /** Ends the trial when it has expired, else records the remaining time; returns true when the revert takes a reboot. */
  tick(): Promise<boolean> {
    return this.inTurn(async () => {
      const running = this.#running
      const left = this.left()
      if (!running || left === undefined) return false
      const { trial, noted } = running
      if (left === 0) {
        this.machine.log.warn('machine configuration on trial reverted', { id: trial.entry, reason: revertReasons[expired[trial.kind]] })
        await this.step('expire', { cause: expired[trial.kind] })
        return trial.reboot
      }
      if (trial.kind === 'try' || this.elapsed() - noted < noteInterval(trial)) return false
      await writeTrial(this.machine, { ...trial, left })
      this.#running = { ...running, noted: this.elapsed() }
      return false
    })
  }

  /** Takes one step of the table, on disk and then in the resources. If writing the disk fails, it throws and nothing has changed. */
  async step(step: Step, { text, deferred = false, trial, cause }: StepOptions = {}): Promise<void> {
    const { store, log, runtime } = this.machine
    const next = transition(this.state, step)
    if (!next) throw new Error(`no step "${step}" during the trial "${this.state}"`)
    const ended = this.#running
    const before = ended ? ended.before : this.inForce
    const which: Record<Which, string | undefined> = { new: text, trial: ended?.text, stay: this.stays }
    const kept = which[next.kept]
    await this.#write(kept, next.to === 'none' ? undefined : trial)
    this.#running = undefined
    if (kept !== undefined) store.put(MachineConfig, 'persistent', kept)
    const inForce = step === 'expire' ? (before ?? kept) : deferred ? undefined : text
    if (inForce !== undefined) store.put(MachineConfig, 'v1alpha1', inForce)
    if (text !== undefined) log.info(`machine configuration ${deferred ? 'staged' : 'applied'}`)
    if (trial && next.to !== 'none') this.#begin(trial, text ?? '', before)
    if (!ended || !next.outcome) return
    const made = text !== undefined && next.stays === 'new' && text === ended.text ? 'confirmed' : next.outcome
    const why = made === 'confirmed' ? undefined : (cause ?? 'replaced')
    await this.#note(() => this.history.decide(ended.trial.entry, made, runtime.now(), why))
  }

  async #write(kept: string | undefined, trial: Trial | undefined): Promise<void> {
    const { kernel, store, log } = this.machine
    try {
      if (trial) await writeTrial(this.machine, trial)
      if (kept !== undefined) await keepConfig(kernel.files, kept)
      if (!trial) await removeTrial(this.machine)
    } catch (error) {
      const persistent = store.get(MachineConfig, 'persistent')?.spec
      const undo = async () => {
        if (persistent !== undefined) await keepConfig(kernel.files, persistent)
        if (this.#running) await writeTrial(this.machine, { ...this.#running.trial, left: this.left() ?? this.#running.trial.left })
        else await removeTrial(this.machine)
      }
      await undo().catch((failure) => log.error('restore of the kept machine configuration failed', { error: failure }))
      throw error
    }
  }

  /** Writes the disk; a failure does not keep the machine from starting. Returns whether it was written. */
  async #attempt(write: () => Promise<void>): Promise<boolean> {
    try {
      await write()
      return true
    } catch (error) {
      this.machine.log.error('write of the kept machine configuration failed', { error })
      return false
    }
  }

  #begin(trial: Trial, text: string, before?: string): void {
    this.#running = { trial, text, before, began: this.elapsed(), ends: this.elapsed() + trial.left, noted: this.elapsed() }
    for (const callback of this.#onTrial) callback()
  }

  /** The history is only informative: a failure to write it stops nothing. */
  async #note(write: () => Promise<void>): Promise<void> {
    try {
      await write()
    } catch (error) {
      this.machine.log.error('write configuration history failed', { error })
    }
  }
}

const seconds = (milliseconds: number) => `${Math.round(milliseconds / 1000)}s`
