/** How a configuration is applied, and which trial follows from that. */
import type { Caller } from '../history/history.ts'
import { longestTrial, type Trial } from '../trial/marker.ts'
import type { Step } from '../trial/state.ts'
import type { ApplyMode } from './mode.ts'
import { reachAfterStart, reachWithin } from './reach.ts'

/** Further options beside the mode. */
export interface ApplyOptions {
  readonly dryRun?: boolean
  /** Milliseconds a try lasts. */
  readonly trialFor?: number | undefined
  /** Milliseconds after which it is reverted unless it is confirmed. */
  readonly confirmWithin?: number | undefined
  readonly by?: Caller
  /** The address of a caller who is not on the machine itself. */
  readonly from?: string | undefined
  /** The age of the caller's connection, in milliseconds. */
  readonly age?: number | undefined
  /** Keep it although the machine may no longer be reachable. */
  readonly noConfirm?: boolean
  /** The caller connects again and confirms by itself. */
  readonly reconnects?: boolean
  /** Override the refusals that can be overridden. */
  readonly force?: boolean
  /** The entry of the history that is restored. */
  readonly restored?: number
}

const defaultTrial = 60_000

/** Why this mode and these options do not go together; nothing when they do. */
export function problemOf(mode: ApplyMode, options: ApplyOptions, canRevert: boolean): string | undefined {
  const { confirmWithin, trialFor = defaultTrial } = options
  const refuse = (why: string) => `apply configuration: ${why}`
  if ((mode === 'try' || confirmWithin !== undefined) && !canRevert)
    return refuse('there is none to go back to, apply this one without trying it')
  if (confirmWithin !== undefined && mode === 'try')
    return refuse('a try is reverted by itself and cannot be confirmed beforehand: choose one of the two')
  if (confirmWithin !== undefined && mode === 'staged')
    return refuse('a staged configuration cannot be confirmed before it is in force: use another mode with confirmation')
  for (const time of [mode === 'try' ? trialFor : 0, confirmWithin ?? 0])
    if (!(time >= 0 && time <= longestTrial)) return refuse(`a trial lasts at most ${longestTrial / 3600_000} hours`)
  return undefined
}

/** The step that is taken, and the trial that starts with it; `risky` when the machine may no longer be reachable. */
export function planOf(
  mode: ApplyMode,
  { trialFor = defaultTrial, confirmWithin }: ApplyOptions,
  { risky, needsReboot }: { risky: boolean; needsReboot: boolean },
): { step: Step; trial?: Pick<Trial, 'kind' | 'within' | 'left' | 'reboot' | 'waits'> } {
  const trial = (kind: Trial['kind'], within: number, reboot = false, waits = false) => ({ kind, within, left: within, reboot, waits })
  if (mode === 'try') return { step: 'applyTry', trial: trial('try', trialFor) }
  if (confirmWithin !== undefined) return { step: 'applyConfirm', trial: trial('confirm', confirmWithin, mode === 'reboot') }
  if (!risky) return { step: 'apply' }
  const waits = mode === 'reboot' || mode === 'staged'
  return { step: 'applyConnectivity', trial: trial('connectivity', waits ? reachAfterStart : reachWithin, needsReboot, waits) }
}

/** The effective mode, or why the requested one is impossible: `auto` decides, and some sections take effect only with a reboot. */
export function effectiveMode(mode: ApplyMode, needReboot: readonly string[]): ApplyMode | Error {
  if (mode === 'auto') return needReboot.length > 0 ? 'reboot' : 'no-reboot'
  if (needReboot.length === 0 || mode === 'reboot' || mode === 'staged') return mode
  const what = `${needReboot.join(', ')} take${needReboot.length > 1 ? '' : 's'} effect with a reboot only`
  return new Error(`apply configuration: this change can't be applied in immediate mode: ${what}: use --mode=auto, reboot or staged`)
}

const seconds = (milliseconds: number) => `${Math.round(milliseconds / 1000)}s`

/** The result, for the caller. */
export function describeResult(mode: ApplyMode, trial: Pick<Trial, 'kind' | 'within'> | undefined, notes: readonly string[]): string {
  const more = notes.map((note) => `; ${note}`).join('')
  if (trial?.kind === 'try')
    return `Applied configuration in try mode, reverted in ${seconds(trial.within)} unless applied permanently${more}`
  const unless = { confirm: 'confirmed', connectivity: `the node is reached${mode === 'no-reboot' ? '' : ' after the reboot'}` }
  const way = trial ? `, reverted in ${seconds(trial.within)} unless ${unless[trial.kind as 'confirm']}` : ''
  if (mode === 'staged') return `Staged configuration to be applied after the next reboot${way}`
  return `Applied configuration ${mode === 'reboot' ? 'with' : 'without'} a reboot${way}${more}`
}
