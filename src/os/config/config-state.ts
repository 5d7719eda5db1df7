/**
 * The configuration on disk and in the resources `v1alpha1` (in force) and `persistent` (kept), and the trial between them.
 * Nothing else writes any of the three, nor the history and the marker beside them. What may follow what is the table in trial/state.ts.
 */
import type { Machine } from '../area.ts'
import { ConfigContainer } from './container.ts'
import { type ConfigHistory, historyPath, notInstalled, notReached } from './history/history.ts'
import { keepConfig, previousStatePath, statePath } from './keep.ts'
import { MachineConfig } from './resources/machine-config.ts'
import { isWhole } from './sources/search.ts'
import { digest, noteInterval, readTrial, removeTrial, resumed, type Trial, trialPath, writeTrial } from './trial/marker.ts'
import { type Step, type TrialState, transition, type Which } from './trial/state.ts'

/** A trial, the configuration on trial, when it began and ends by the monotonic clock, and what was in force before it. */
interface Running {
  readonly trial: Trial
  readonly text: string
  readonly began: number
  readonly ends: number
  readonly before?: string
  /** When the time that is left was last noted. */
  readonly noted: number
}

/** What a step is about. */
export interface StepOptions {
  /** The configuration that is handed in. */
  readonly text?: string
  /** It takes effect with the next start only. */
  readonly deferred?: boolean
  /** The trial that begins. */
  readonly trial?: Trial
  /** Why the trial that is on ends. */
  readonly reason?: string
}

type Dependencies = Pick<Machine, 'store' | 'runtime' | 'log'> & { kernel: Pick<Machine['kernel'], 'files'> }

const expired: Record<Trial['kind'], string> = {
  try: 'its time was over',
  confirm: 'it was not confirmed in time',
  connectivity: notReached,
}

/** Everything about the configuration that is on STATE. */
export const configPaths: readonly string[] = [statePath, previousStatePath, trialPath, historyPath]

/** The configuration of one machine over time. */
export class ConfigState {
  #running?: Running
  #turn: Promise<unknown> = Promise.resolve()
  readonly #onTrial = new Set<() => void>()

  constructor(
    readonly machine: Dependencies,
    readonly history: ConfigHistory,
    /** Milliseconds by a clock that nobody sets. */
    readonly elapsed: () => number,
  ) {}

  /** Which trial is on. */
  get state(): TrialState {
    return this.#running?.trial.kind ?? 'none'
  }

  /** The trial that is on. */
  get trial(): Trial | undefined {
    return this.#running?.trial
  }

  /** The configuration in force. */
  get inForce(): string | undefined {
    return this.machine.store.get(MachineConfig, 'v1alpha1')?.spec
  }

  /** The last configuration that was meant to stay; through a chain of trials always the one before the first of them. */
  get stays(): string | undefined {
    return this.#running?.trial.before ?? this.machine.store.get(MachineConfig, 'persistent')?.spec ?? this.inForce
  }

  /** Milliseconds the trial still has; undefined when none is on, or when its time begins with the next start. */
  left(): number | undefined {
    const running = this.#running
    return running && !running.trial.waits ? Math.max(0, Math.ceil(running.ends - this.elapsed())) : undefined
  }

  /** Milliseconds since the configuration on trial is in force, in this run of the machine; undefined before it is. */
  get since(): number | undefined {
    const running = this.#running
    return running && !running.trial.waits ? this.elapsed() - running.began : undefined
  }

  /** Milliseconds until `tick` has something to do. */
  nextTick(): number | undefined {
    const left = this.left()
    return left === undefined || this.state === 'try' ? left : Math.min(left, noteInterval(this.#running!.trial))
  }

  /** Calls back whenever a trial begins. */
  onTrial(callback: () => void): void {
    this.#onTrial.add(callback)
  }

  /** Runs operations one after the other, in the order they came. */
  inTurn<T>(act: () => Promise<T>): Promise<T> {
    const done = this.#turn.then(act)
    this.#turn = done.catch(() => {})
    return done
  }

  /** Puts a configuration in force that the machine found itself; a whole one is kept. */
  found(text: string): void {
    this.machine.store.put(MachineConfig, 'v1alpha1', text)
    if (isWhole(ConfigContainer.parse(text))) this.machine.store.put(MachineConfig, 'persistent', text)
  }

  /** Writes what is to be kept: STATE may have been mounted over what was written before. */
  keep(): Promise<void> {
    return this.inTurn(async () => {
      const kept = this.machine.store.get(MachineConfig, 'persistent')?.spec
      if (kept === undefined) return
      if (await keepConfig(this.machine.kernel.files, kept)) this.machine.log.info('machine configuration kept')
    })
  }

  /** Everything there is on STATE, or in its place while there is none yet. */
  files(): ReadonlyMap<string, string> {
    const { files } = this.machine.kernel
    return new Map(
      configPaths.flatMap((path) => [files.readTextIfThere(path)].flatMap((text) => (text === undefined ? [] : [[path, text]]))),
    )
  }

  /** Writes what there was in memory to the STATE that has been mounted over it. */
  carry(known: ReadonlyMap<string, string>): Promise<void> {
    return this.inTurn(async () => {
      // The configuration comes last: where the machine stops in between, it has none.
      for (const path of configPaths.toReversed()) {
        const text = known.get(path)
        if (text !== undefined) await this.machine.kernel.files.writeAtomic(path, text, { mode: 0o600 })
      }
    })
  }

  /** Gives up the configuration that the machine could not be installed with: none is in force, and none is kept. */
  withdraw(): Promise<void> {
    return this.inTurn(async () => {
      const { kernel, store, runtime } = this.machine
      const withdrawn = this.inForce
      this.#running = undefined
      for (const id of ['v1alpha1', 'persistent']) if (store.get(MachineConfig, id)) store.destroy(MachineConfig, id)
      for (const path of [statePath, previousStatePath, trialPath])
        if (kernel.files.readTextIfThere(path) !== undefined) await kernel.files.remove(path)
      const entry = this.history.list().findLast(({ text }) => text === withdrawn)
      if (entry) await this.#note(() => this.history.decide(entry.id, 'reverted', runtime.now(), notInstalled))
    })
  }

  /**
   * Decides at a start what the marker left open. Called before any configuration is read; resolves to the configuration to
   * start with where the disk could not be brought to hold it.
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
      const reason =
        trial.kind === 'try' ? 'the machine restarted' : isKept ? expired[trial.kind] : 'the machine restarted before it was kept'
      log.warn('machine configuration on trial reverted', { id: trial.entry, reason })
      await this.#note(() => this.history.decide(trial.entry, 'reverted', runtime.now(), reason))
      return reverted ? undefined : trial.before
    })
  }

  /** Ends the trial when its time is over, and notes what is left of it when it is not; true when it takes a reboot to go back. */
  tick(): Promise<boolean> {
    return this.inTurn(async () => {
      const running = this.#running
      const left = this.left()
      if (!running || left === undefined) return false
      const { trial, noted } = running
      if (left === 0) {
        this.machine.log.warn('machine configuration on trial reverted', { id: trial.entry, reason: expired[trial.kind] })
        await this.step('expire', { reason: expired[trial.kind] })
        return trial.reboot
      }
      if (trial.kind === 'try' || this.elapsed() - noted < noteInterval(trial)) return false
      await writeTrial(this.machine, { ...trial, left })
      this.#running = { ...running, noted: this.elapsed() }
      return false
    })
  }

  /** Takes one step of the table, on disk and then in the resources. When the disk fails it throws, and all is as it was. */
  async step(step: Step, { text, deferred = false, trial, reason }: StepOptions = {}): Promise<void> {
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
    const why = made === 'confirmed' ? undefined : (reason ?? 'another one was applied')
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

  /** A disk that fails keeps no machine from its start; whether it was written. */
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

  /** The history is for people: what cannot be noted there stops nothing. */
  async #note(write: () => Promise<void>): Promise<void> {
    try {
      await write()
    } catch (error) {
      this.machine.log.error('history of configurations could not be written', { error })
    }
  }
}

const seconds = (milliseconds: number) => `${Math.round(milliseconds / 1000)}s`
