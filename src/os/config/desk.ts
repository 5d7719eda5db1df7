/**
 * Where new configurations are taken in: judged whole, then kept, put in force, or both, and remembered. One at a time;
 * a configuration on trial goes back to the one before it when its time is over.
 */
import { formatIssue } from '../../document/config-error.ts'
import type { Machine } from '../area.ts'
import { MaintenanceServiceRequest } from '../runtime/resources/maintenance-service-request.ts'
import { ConfigContainer } from './container.ts'
import { foresee } from './foresee.ts'
import { type Caller, ConfigHistory, itself } from './history.ts'
import { keepConfig } from './keep.ts'
import { configOf } from './parse.ts'
import { MachineConfig } from './resources/machine-config.ts'
import { isWhole } from './sources/search.ts'
import { digest, longestTrial, readTrial, remaining, removeTrial, type Trial, writeTrial } from './trial.ts'

/** How a new configuration takes effect. */
export type ApplyMode = 'auto' | 'no-reboot' | 'reboot' | 'staged' | 'try'

/** Why a configuration was not taken. */
export class ApplyError extends Error {
  override name = 'ApplyError'
  constructor(
    readonly reason: 'invalid' | 'busy' | 'not-found',
    message: string,
  ) {
    super(message)
  }
}

/** How a configuration is to be taken in. */
export interface ApplyOptions {
  readonly dryRun?: boolean
  /** Milliseconds a try lasts. */
  readonly trialFor?: number
  /** Milliseconds after which it goes back unless it is confirmed. */
  readonly confirmWithin?: number
  readonly by?: Caller
  /** The entry of the history that is brought back. */
  readonly restored?: number
}

/** What was done with a configuration. */
export interface Applied {
  readonly mode: ApplyMode
  readonly warnings: readonly string[]
  readonly details: string
  /** Number in the history; 0 when nothing was remembered. */
  readonly id: number
  readonly confirmBy?: Date
}

type Parts = Pick<Machine, 'store' | 'runtime' | 'log'> & { kernel: Pick<Machine['kernel'], 'mode' | 'files'> }

const defaultTrial = 60_000

/** The place where configurations are handed in. */
export class ConfigDesk {
  readonly history: ConfigHistory
  #busy = false
  #trial?: { trial: Trial; ends: number }
  #told = () => {}

  constructor(
    readonly machine: Parts,
    /** Starts the machine anew, for configurations that were applied with a reboot. */
    readonly reboot: () => void = () => {},
    /** Why a machine that waits for its first configuration cannot be installed as one says; nothing when it can. */
    readonly refuseFirst: (config: ConfigContainer) => Promise<string | undefined> = async () => undefined,
  ) {
    this.history = new ConfigHistory(machine.kernel.files, machine.log)
  }

  /** Whether the machine still waits for its first configuration. */
  get inMaintenance(): boolean {
    const { store } = this.machine
    if (!store.get(MaintenanceServiceRequest, 'maintenance')) return false
    const config = configOf(store.get(MachineConfig, 'v1alpha1'))
    return !config || !isWhole(config)
  }

  /** Takes a configuration in. Throws ConfigError when it cannot be read, ApplyError when it cannot be used. */
  async apply(input: Uint8Array | string, mode: ApplyMode, options: ApplyOptions = {}): Promise<Applied> {
    return this.#alone(() => this.#take(input, this.inMaintenance && mode === 'reboot' ? 'no-reboot' : mode, options))
  }

  /** Applies an entry of the history again. */
  async restore(id: number, mode: ApplyMode, options: ApplyOptions = {}): Promise<Applied> {
    return this.apply(this.text(id), mode, { ...options, restored: id })
  }

  /** The text of an entry; of the configuration in force for 0. Throws ApplyError 'not-found'. */
  text(id: number): string {
    const text = id === 0 ? this.machine.store.get(MachineConfig, 'v1alpha1')?.spec : this.history.get(id)?.text
    if (text !== undefined) return text
    if (id === 0) throw new ApplyError('not-found', 'show configuration: this machine has none yet')
    const known = this.history.list().map((entry) => entry.id)
    throw new ApplyError('not-found', `show configuration ${id}: only ${known.join(', ') || 'none'} are remembered`)
  }

  /** Ends the trial in favour of what is on trial. Throws ApplyError 'not-found' when nothing is. */
  async confirm(): Promise<number> {
    return this.#alone(async () => {
      const { store, kernel, log } = this.machine
      const trial = this.#trial?.trial
      if (!trial) throw new ApplyError('not-found', 'confirm configuration: none waits to be confirmed')
      const text = store.get(MachineConfig, 'v1alpha1')?.spec
      if (trial.kind === 'try' && text !== undefined) {
        await keepConfig(kernel.files, text)
        store.put(MachineConfig, 'persistent', text)
      }
      await removeTrial(this.machine)
      this.#trial = undefined
      await this.history.decide(trial.entry, 'confirmed', this.machine.runtime.now())
      log.info('machine configuration confirmed', { id: trial.entry })
      return trial.entry
    })
  }

  /** Goes on with a trial that began before this start. */
  resume(): void {
    const trial = readTrial(this.machine)
    if (trial) this.#begin(trial, remaining(trial, this.machine.runtime.now().getTime()))
  }

  /** Milliseconds the trial still has; undefined when none is on. */
  left(): number | undefined {
    return this.#trial && Math.max(0, Math.ceil(this.#trial.ends - performance.now()))
  }

  /** Goes back to the configuration before the trial. */
  async lapse(): Promise<void> {
    await this.#alone(async () => {
      const trial = this.#trial?.trial
      if (!trial || this.left() !== 0) return
      const { store, kernel, log, runtime } = this.machine
      const reason = trial.kind === 'try' ? 'its time was over' : 'it was not confirmed in time'
      log.warn('configuration on trial was not made to stay, going back to the one before', { id: trial.entry, reason })
      store.put(MachineConfig, 'v1alpha1', trial.before)
      if (trial.kind === 'confirm') {
        store.put(MachineConfig, 'persistent', trial.before)
        await keepConfig(kernel.files, trial.before)
      }
      await removeTrial(this.machine)
      this.#trial = undefined
      await this.#note(() => this.history.decide(trial.entry, 'reverted', runtime.now(), reason))
      if (trial.reboot) this.reboot()
    })
  }

  /** Calls back whenever a trial begins. */
  onTrial(told: () => void): void {
    this.#told = told
  }

  async #alone<T>(act: () => Promise<T>): Promise<T> {
    if (this.#busy) throw new ApplyError('busy', 'apply configuration: another configuration is being applied, try again when it is done')
    this.#busy = true
    try {
      return await act()
    } finally {
      this.#busy = false
    }
  }

  async #take(input: Uint8Array | string, mode: ApplyMode, options: ApplyOptions): Promise<Applied> {
    const config = ConfigContainer.parse(input)
    const { errors, warnings } = config.validate(this.machine.kernel.mode)
    if (errors.length > 0) throw new ApplyError('invalid', errors.map(formatIssue).join('\n'))
    const refusal = this.inMaintenance && isWhole(config) ? await this.refuseFirst(config) : undefined
    if (refusal !== undefined) throw new ApplyError('invalid', refusal)
    const text = config.toString()
    const before = this.#before()
    this.#check(mode, options, before)
    const applied = { mode, warnings: warnings.map(formatIssue), id: 0 }
    if (options.dryRun) return { ...applied, details: await foresee(this.machine, text, mode) }
    const trial = before === undefined ? undefined : this.#trialOf(text, mode, options, before)
    const id = await this.#remember(text, mode, options, trial !== undefined)
    if (trial) await writeTrial(this.machine, { ...trial, entry: id })
    if (mode !== 'try') await keepConfig(this.machine.kernel.files, text)
    if (!trial) await removeTrial(this.machine)
    this.#trial = undefined
    this.#put(text, mode)
    if (trial) this.#begin({ ...trial, entry: id }, trial.within)
    const confirmBy = trial?.kind === 'confirm' ? new Date(trial.since + trial.within) : undefined
    return { ...applied, id, details: details(mode, trial), confirmBy }
  }

  /** What a trial goes back to: through a chain of trials always the last one that was meant to stay. */
  #before(): string | undefined {
    const { store } = this.machine
    return this.#trial?.trial.before ?? (store.get(MachineConfig, 'persistent') ?? store.get(MachineConfig, 'v1alpha1'))?.spec
  }

  #check(mode: ApplyMode, { confirmWithin, trialFor = defaultTrial }: ApplyOptions, before: string | undefined): void {
    const refuse = (why: string) => {
      throw new ApplyError('invalid', `apply configuration: ${why}`)
    }
    if ((mode === 'try' || confirmWithin !== undefined) && before === undefined)
      refuse('there is none to go back to, apply this one without trying it')
    if (confirmWithin !== undefined && mode === 'try') refuse('a try goes back by itself, it is not to be confirmed: choose one of the two')
    if (confirmWithin !== undefined && mode === 'staged')
      refuse('a staged configuration cannot be confirmed before it is in force: use another mode with confirmation')
    for (const time of [mode === 'try' ? trialFor : 0, confirmWithin ?? 0])
      if (!(time >= 0 && time <= longestTrial)) refuse(`a trial lasts at most ${longestTrial / 3600_000} hours`)
  }

  #trialOf(text: string, mode: ApplyMode, { confirmWithin, trialFor = defaultTrial }: ApplyOptions, before: string): Trial | undefined {
    const since = this.machine.runtime.now().getTime()
    const marker = { before, after: digest(text), since, entry: 0 }
    if (mode === 'try') return { ...marker, kind: 'try', within: trialFor, reboot: false }
    if (confirmWithin === undefined) return undefined
    return { ...marker, kind: 'confirm', within: confirmWithin, reboot: mode === 'reboot' }
  }

  async #remember(text: string, mode: ApplyMode, { by = itself, restored }: ApplyOptions, pending: boolean): Promise<number> {
    const { store, runtime } = this.machine
    const time = runtime.now().toISOString()
    const active = store.get(MachineConfig, 'v1alpha1')
    let id = 0
    await this.#note(async () => {
      if (this.#trial) await this.history.decide(this.#trial.trial.entry, 'reverted', runtime.now(), 'another one was applied')
      if (active && !this.history.list().some((entry) => entry.text === active.spec))
        await this.history.add({ time: active.metadata.created.toISOString(), mode: 'found', by: itself, text: active.spec })
      id = await this.history.add({
        time,
        mode,
        by,
        ...(restored ? { restored } : {}),
        ...(pending ? { outcome: 'pending' as const } : {}),
        text,
      })
    })
    return id
  }

  /** The history is for people: what cannot be noted there stops nothing. */
  async #note(write: () => Promise<void>): Promise<void> {
    try {
      await write()
    } catch (error) {
      this.machine.log.error('history of configurations could not be written', { error })
    }
  }

  #put(text: string, mode: ApplyMode): void {
    const { store, log } = this.machine
    if (mode !== 'try') store.put(MachineConfig, 'persistent', text)
    if (mode === 'staged' || mode === 'reboot') return
    store.put(MachineConfig, 'v1alpha1', text)
    log.info('machine configuration applied', { mode })
  }

  #begin(trial: Trial, left: number): void {
    this.#trial = { trial, ends: performance.now() + left }
    this.#told()
  }
}

const seconds = (milliseconds: number) => `${Math.round(milliseconds / 1000)}s`

function details(mode: ApplyMode, trial: Trial | undefined): string {
  if (trial?.kind === 'try') return `Applied configuration in try mode, reverted in ${seconds(trial.within)} unless applied for good`
  const way = trial ? `, reverted in ${seconds(trial.within)} unless confirmed` : ''
  if (mode === 'staged') return 'Staged configuration to be applied after the next reboot'
  return `Applied configuration ${mode === 'reboot' ? 'with' : 'without'} a reboot${way}`
}
