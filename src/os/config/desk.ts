/**
 * Where new configurations are taken in: judged whole, then kept, put in force, or both. One at a time; a configuration
 * on trial goes back to the one before it when its time is over.
 */
import { formatIssue } from '../../document/config-error.ts'
import type { Machine } from '../area.ts'
import { MaintenanceServiceRequest } from '../runtime/resources/maintenance-service-request.ts'
import { ConfigContainer } from './container.ts'
import { MachineConfig } from './resources/machine-config.ts'

/** How a new configuration takes effect. */
export type ApplyMode = 'auto' | 'no-reboot' | 'reboot' | 'staged' | 'try'

/** Why a configuration was not taken. */
export class ApplyError extends Error {
  override name = 'ApplyError'
  constructor(
    readonly reason: 'invalid' | 'busy',
    message: string,
  ) {
    super(message)
  }
}

/** What was done with a configuration. */
export interface Applied {
  readonly mode: ApplyMode
  readonly warnings: readonly string[]
  readonly details: string
}

/** The place where configurations are handed in. */
export class ConfigDesk {
  #busy = false
  #trial?: { timer: ReturnType<typeof setTimeout>; before: string }

  constructor(readonly machine: Pick<Machine, 'kernel' | 'store' | 'events' | 'log'>) {}

  /** Whether the machine still waits for its first configuration. */
  get inMaintenance(): boolean {
    const { store } = this.machine
    return store.get(MaintenanceServiceRequest, 'maintenance') !== undefined && !store.get(MachineConfig, 'v1alpha1')
  }

  /** Takes a configuration in. Throws ConfigError when it cannot be read, ApplyError when it cannot be used. */
  async apply(input: Uint8Array | string, mode: ApplyMode, { dryRun = false, trialFor = 60_000 } = {}): Promise<Applied> {
    if (this.#busy) throw new ApplyError('busy', 'apply configuration: another configuration is being applied, try again when it is done')
    this.#busy = true
    try {
      return this.#take(input, this.inMaintenance && mode === 'reboot' ? 'no-reboot' : mode, dryRun, trialFor)
    } finally {
      this.#busy = false
    }
  }

  #take(input: Uint8Array | string, mode: ApplyMode, dryRun: boolean, trialFor: number): Applied {
    const { store, log } = this.machine
    const config = ConfigContainer.parse(input)
    const { errors, warnings } = config.validate(this.machine.kernel.mode)
    if (errors.length > 0) throw new ApplyError('invalid', errors.map(formatIssue).join('\n'))
    const applied = { mode, warnings: warnings.map(formatIssue) }
    const text = config.toString()
    if (dryRun) return { ...applied, details: this.#foresee(text, mode) }
    if (mode === 'try') {
      const before = this.#trial?.before ?? store.get(MachineConfig, 'v1alpha1')?.spec
      if (before === undefined)
        throw new ApplyError('invalid', 'apply configuration: there is none to go back to, apply this one without trying it')
      this.#endTrial()
      store.put(MachineConfig, 'v1alpha1', text)
      const timer = setTimeout(() => {
        log.warn('configuration on trial was not applied for good, going back to the one before')
        this.#trial = undefined
        store.put(MachineConfig, 'v1alpha1', before)
      }, trialFor)
      this.#trial = { timer, before }
      return {
        ...applied,
        details: `Applied configuration in try mode, reverted in ${Math.round(trialFor / 1000)}s unless applied for good`,
      }
    }
    this.#endTrial()
    store.put(MachineConfig, 'persistent', text)
    if (mode === 'auto' || mode === 'no-reboot') {
      store.put(MachineConfig, 'v1alpha1', text)
      log.info('machine configuration applied', { mode })
      return { ...applied, details: 'Applied configuration without a reboot' }
    }
    return {
      ...applied,
      details: mode === 'staged' ? 'Staged configuration to be applied after the next reboot' : 'Applied configuration with a reboot',
    }
  }

  #foresee(text: string, mode: ApplyMode): string {
    const present = this.machine.store.get(MachineConfig, 'v1alpha1')?.spec ?? ''
    if (present === text) return 'Dry run: no changes.'
    const how = mode === 'reboot' ? 'with a reboot' : mode === 'staged' ? 'after the next reboot' : 'without a reboot'
    return `Dry run: the configuration would be applied ${how}.\n${difference(present, text)}`
  }

  #endTrial(): void {
    clearTimeout(this.#trial?.timer)
    this.#trial = undefined
  }
}

/** Lines that go (`-`) and come (`+`), with what the two texts share at both ends left out. */
function difference(before: string, after: string): string {
  const a = before.split('\n')
  const b = after.split('\n')
  let head = 0
  while (head < a.length && head < b.length && a[head] === b[head]) head++
  let tail = 0
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail++
  const gone = a.slice(head, a.length - tail).map((line) => `-${line}`)
  const come = b.slice(head, b.length - tail).map((line) => `+${line}`)
  return [...gone, ...come].join('\n')
}
