/**
 * The service that receives machine configurations from callers: validates them as a whole, records them in the history, and takes
 * the step that applies or keeps them, or both. One at a time.
 */
import { formatIssue } from '../../../document/config-error.ts'
import type { Reporter } from '../../../document/kind.ts'
import type { StatusName } from '../../../rpc/status.ts'
import { apiStatus } from '../../../wire/api-status.ts'
import type { Machine } from '../../area.ts'
import { ConfigState } from '../config-state.ts'
import { ConfigContainer } from '../container.ts'
import type { V1Alpha1Document } from '../documents/v1alpha1.ts'
import { changesBetween } from '../history/changes.ts'
import { ConfigHistory, itself } from '../history/history.ts'
import { inMaintenance } from '../maintenance.ts'
import { configOf } from '../parse.ts'
import { answers, type Probe } from '../probe.ts'
import { MachineConfig } from '../resources/machine-config.ts'
import { isWhole } from '../sources/search.ts'
import { digest, type Trial } from '../trial/marker.ts'
import { type AuthorityTrial, authorityTrial } from './authority-trial.ts'
import { dryRun } from './dry-run.ts'
import type { ApplyMode } from './mode.ts'
import { type ApplyOptions, describeResult, effectiveMode, planOf, problemOf } from './options.ts'
import { authoritiesOf, type ReachTarget, type Risk, reachTargets, riskOf, settleTime } from './reach.ts'
import { type DiskSelector, refusalsOf } from './refusals.ts'
import { needsReboot, takesEffectLater } from './when-effective.ts'

/** Reasons, and their statuses. */
const refusals = { invalid: 'InvalidArgument', busy: 'FailedPrecondition', 'not-found': 'NotFound' } as const

/** Why a configuration was refused. */
export class ApplyError extends Error {
  override name = 'ApplyError'
  constructor(
    readonly reason: keyof typeof refusals,
    message: string,
  ) {
    super(message)
  }

  get [apiStatus](): StatusName {
    return refusals[this.reason]
  }
}

/** The result of applying a configuration. */
export interface Applied {
  readonly mode: ApplyMode
  readonly warnings: readonly string[]
  readonly details: string
  /** Number in the history; 0 when nothing was recorded. */
  readonly id: number
  readonly confirmBy?: Date | undefined
  /** Milliseconds within which the machine must be reached over a new connection. */
  readonly reachWithin?: number
}

const probeTimeout = 2000

type Dependencies = Pick<Machine, 'store' | 'runtime' | 'log'> & { kernel: Pick<Machine['kernel'], 'mode' | 'files'> }

/** What the service uses of the rest of the machine. */
export interface Hooks {
  /** Reboots the machine. */
  reboot?(): void
  /** Why a machine in maintenance cannot be installed with its first configuration; nothing when it can. */
  refuseFirst?(config: ConfigContainer): Promise<string | undefined>
  /** Why a disk selector matches no disk of this machine; nothing when it matches one. */
  refuseSelector?(selector: DiskSelector): string | undefined
  /** Reports problems of a configuration that only this machine can detect. */
  rules?(config: V1Alpha1Document, report: Reporter): void
  /** Monotonic milliseconds. */
  elapsed?(): number
  /** Whether a target answers. */
  probe?: typeof answers
}

/** The service of one machine. */
export class ConfigApply {
  readonly history: ConfigHistory
  readonly state: ConfigState
  #busy = false
  /** The current trial of authorities, and whether a client showed that it is accepted afterwards. */
  #authorities?: (AuthorityTrial & { readonly trial: Trial; shown: boolean }) | undefined

  constructor(
    readonly machine: Dependencies,
    readonly hooks: Hooks = {},
  ) {
    this.history = new ConfigHistory(machine.kernel.files, machine.log)
    this.state = new ConfigState(machine, this.history, hooks.elapsed ?? machine.runtime.clock.elapsed)
  }

  /** Whether the machine still waits for its first configuration. */
  get inMaintenance(): boolean {
    return inMaintenance(this.machine.store)
  }

  /** Applies a configuration. Throws ConfigError when it cannot be parsed, ApplyError when it is refused. */
  async apply(input: Uint8Array | string, mode: ApplyMode, options: ApplyOptions = {}): Promise<Applied> {
    return this.#exclusively(async () => {
      if (options.age !== undefined) await this.#confirmReached(options.age, options.from ?? '')
      return this.#take(input, this.inMaintenance && mode === 'reboot' ? 'no-reboot' : mode, options)
    })
  }

  /** Applies an entry of the history again. */
  async restore(id: number, mode: ApplyMode, options: ApplyOptions = {}): Promise<Applied> {
    return this.apply(this.text(id), mode, { ...options, restored: id })
  }

  /** The text of an entry; of the configuration in force for 0. Throws ApplyError 'not-found'. */
  text(id: number): string {
    const text = id === 0 ? this.state.inForce : this.history.get(id)?.text
    if (text !== undefined) return text
    if (id === 0) throw new ApplyError('not-found', 'show configuration: this machine has none yet')
    const known = this.history.list().map((entry) => entry.id)
    throw new ApplyError('not-found', `show configuration ${id}: only ${known.join(', ') || 'none'} are remembered`)
  }

  /**
   * Confirms the configuration on trial; resolves to its number. `age` is the age of the caller's connection in milliseconds.
   * Throws ApplyError 'not-found' when there is no trial.
   */
  async confirm(age?: number): Promise<number> {
    return this.#exclusively(async () => {
      const { trial } = this.state
      if (!trial) throw new ApplyError('not-found', 'confirm configuration: none waits to be confirmed')
      if (trial.kind === 'connectivity' && age !== undefined && !this.#isNew(age))
        throw new ApplyError('busy', 'confirm configuration: this connection is older than the change, connect again')
      await this.state.step('confirm')
      this.machine.log.info('machine configuration confirmed', { id: trial.entry })
      return trial.entry
    })
  }

  /** A peer reached the machine over a connection of this age (milliseconds), or answered it: a trial that waited only for that is confirmed. */
  async reached(age: number, by: string): Promise<void> {
    if (this.#isNew(age)) await this.state.inTurn(() => this.#confirmReached(age, by))
  }

  /** A client with a certificate of this authority (its fingerprint) was accepted; only a trial of authorities uses this. */
  letIn(authority: string): void {
    const waiting = this.#authorities
    if (waiting?.clients.has(authority)) waiting.shown = true
  }

  /** The targets whose answer shows that the machine on trial is still reachable. */
  targets(trial: Trial): Probe[] {
    const authorities = authoritiesOf(configOf(this.machine.store.get(MachineConfig, 'v1alpha1')))
    const others = trial.targets.map(({ host, port, tls }) => ({ host, port, ...(tls && { authorities }) }))
    const waiting = this.#authorities
    return waiting?.trial === trial && waiting.shown ? [...others, waiting.own] : others
  }

  async #confirmReached(age: number, by: string): Promise<void> {
    const { trial } = this.state
    if (!trial || !this.#isNew(age)) return
    await this.state.step('confirm')
    this.machine.log.info('machine configuration confirmed', { id: trial.entry, by })
  }

  /** Whether a connection of this age was made after the change on trial was in force. */
  #isNew(age: number): boolean {
    const since = this.state.since
    return this.state.trial?.kind === 'connectivity' && since !== undefined && since - settleTime >= age
  }

  /** Ends a trial that has expired. */
  async tick(): Promise<void> {
    if (await this.state.tick()) this.hooks.reboot?.()
  }

  async #exclusively<T>(act: () => Promise<T>): Promise<T> {
    if (this.#busy) throw new ApplyError('busy', 'apply configuration: another configuration is being applied, try again when it is done')
    this.#busy = true
    try {
      return await this.state.inTurn(act)
    } finally {
      this.#busy = false
    }
  }

  async #take(input: Uint8Array | string, requested: ApplyMode, options: ApplyOptions): Promise<Applied> {
    const config = ConfigContainer.parse(input)
    const { errors, warnings } = config.validate(this.machine.kernel.mode, this.hooks.rules)
    if (errors.length > 0) throw new ApplyError('invalid', errors.map(formatIssue).join('\n'))
    const maintenance = this.inMaintenance
    const refusal = maintenance && isWhole(config) ? await this.hooks.refuseFirst?.(config) : undefined
    if (refusal !== undefined) throw new ApplyError('invalid', refusal)
    const plan = this.#plan(config, maintenance, requested, options)
    const applied = { mode: plan.mode, warnings: warnings.map(formatIssue), id: 0 }
    if (options.dryRun) {
      const values = options.by?.roles.includes('os:admin') ?? false
      return { ...applied, details: await dryRun(this.machine, { ...plan, config, values }) }
    }
    const { mode, notes, step, trial, stays, risk, lasting } = plan
    const text = config.toString()
    const targets = trial?.kind === 'connectivity' && risk ? await this.#answering(config, risk, trial.waits, options) : []
    const time = this.machine.runtime.now()
    const id = await this.#remember(text, requested, options, trial !== undefined)
    const marker = trial && { ...trial, before: stays ?? '', after: digest(text), entry: id, targets }
    const locks = marker && risk && lasting && !options.reconnects ? authorityTrial(risk, lasting, config) : undefined
    this.#authorities = marker && locks && { ...locks, trial: marker, shown: false }
    await this.state.step(step, { text, ...(marker && { trial: marker }), deferred: mode === 'reboot' || mode === 'staged' })
    if (mode === 'reboot') this.hooks.reboot?.()
    const reached = trial?.kind === 'connectivity' && !trial.waits ? { reachWithin: trial.within } : {}
    const confirmBy = trial?.kind === 'confirm' ? new Date(time.getTime() + trial.within) : undefined
    return { ...applied, id, details: describeResult(mode, trial, notes), confirmBy, ...reached }
  }

  /** How the configuration would be applied. Throws ApplyError when it may not be. */
  #plan(config: ConfigContainer, maintenance: boolean, requested: ApplyMode, options: ApplyOptions) {
    const { store, kernel } = this.machine
    const inForce = configOf(store.get(MachineConfig, 'v1alpha1'))
    const stays = maintenance ? undefined : this.state.stays
    const invalid = (message: string) => new ApplyError('invalid', message)
    const around = { store, mode: kernel.mode, refuseSelector: this.hooks.refuseSelector }
    const refusals = inForce && !maintenance ? refusalsOf(inForce, config, around) : []
    const standing = refusals.filter(({ forcible }) => !(forcible && options.force))
    if (standing.length > 0) {
      const hint = standing.every(({ forcible }) => forcible) ? ['"talosctl apply-config --force" applies it anyway'] : []
      throw invalid([...standing.map(({ message }) => message), ...hint].join('\n'))
    }
    const changes = changesBetween(inForce, config)
    const needReboot = inForce && !maintenance ? needsReboot(changes, kernel.mode) : []
    const mode = effectiveMode(requested, needReboot)
    const problem = mode instanceof Error ? mode.message : problemOf(mode, options, stays !== undefined)
    if (problem !== undefined || mode instanceof Error) throw invalid(problem ?? '')
    const why = requested === 'auto' && needReboot.length > 0 ? [`${needReboot.join(', ')} needs it`] : []
    const notes = maintenance || mode === 'reboot' ? why : takesEffectLater(changes).map((what) => `takes effect later: ${what}`)
    const mayRevert = stays !== undefined && options.from !== undefined && !options.noConfirm
    // During a trial the disruptive change may be in force already, so the configuration to go back to is compared too.
    const lasting = this.state.trial && stays !== undefined ? ConfigContainer.parse(stays) : inForce
    const changed = lasting === inForce ? changes : changesBetween(lasting, config)
    const risk = mayRevert ? riskOf(changed) : undefined
    const rebootBack = maintenance || !lasting ? false : needsReboot(changed, kernel.mode).length > 0
    return { mode, changes, notes, stays, lasting, risk, ...planOf(mode, options, { risky: risk !== undefined, needsReboot: rebootBack }) }
  }

  /** The possible later witnesses of reachability that answer now; none where the caller reconnects. */
  async #answering(next: ConfigContainer, risk: Risk, waits: boolean, { from = '', reconnects }: ApplyOptions): Promise<ReachTarget[]> {
    if (reconnects && !waits) return []
    const authorities = authoritiesOf(configOf(this.machine.store.get(MachineConfig, 'v1alpha1')))
    const targets = reachTargets(risk, next, from, this.machine.store)
    const probe = this.hooks.probe ?? answers
    const there = await Promise.all(targets.map(({ tls, ...target }) => probe({ ...target, ...(tls && { authorities }) }, probeTimeout)))
    // Targets that answered before the current trial count, although the change on trial may keep them from answering now.
    const before = this.state.state === 'connectivity' ? (this.state.trial?.targets ?? []) : []
    const known = ({ host, port }: ReachTarget) => before.some((each) => each.host === host && each.port === port)
    return targets.filter((target, index) => there[index] || known(target))
  }

  async #remember(text: string, mode: ApplyMode, { by = itself, restored }: ApplyOptions, pending: boolean): Promise<number> {
    const { store, runtime, log } = this.machine
    const active = store.get(MachineConfig, 'v1alpha1')
    try {
      if (active && !this.history.list().some((entry) => entry.text === active.spec))
        await this.history.add({ time: active.metadata.created.toISOString(), mode: 'found', by: itself, text: active.spec })
      return await this.history.add({
        time: runtime.now().toISOString(),
        mode,
        by,
        ...(restored && { restored }),
        ...(pending && { outcome: 'pending' as const }),
        text,
      })
    } catch (error) {
      // The history is only informative: a failure to write it stops nothing.
      log.error('write configuration history failed', { error })
      return 0
    }
  }
}
