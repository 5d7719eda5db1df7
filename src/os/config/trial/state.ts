/**
 * What becomes of the machine configuration, in prose.
 *
 * Without a trial (`none`) the configuration on disk is the one that is meant to stay. `apply` replaces it. `try` puts
 * another one in force and leaves the disk as it is: it ends with its time, or with the machine. `provisional` writes the
 * new one to the disk too, to be confirmed by the operator (`confirm`) or by somebody who still reaches the machine
 * (`connectivity`); these trials outlive restarts, and the rest of their time runs on.
 *
 * `confirm` makes the configuration on trial the one that stays. `expire` goes back to the last one that was meant to stay,
 * and so does a `restart` during a try. A configuration that is applied during a trial ends it; what a new trial goes back
 * to is still the last one that was meant to stay, never one that was on trial itself. Whether it has to be tried is judged by
 * its difference from that one too: the change on trial may have cut the machine off already.
 *
 * The disk is written before the resources, and a trial's marker before the configuration: wherever the machine stops in
 * between, the next start finds either the marker, and goes back, or the new configuration without one, which stays.
 */

/** Which trial is on. */
export type TrialState = 'none' | 'try' | 'confirm' | 'connectivity'

/** What may happen. The first four hand in a configuration. */
export type Step = 'apply' | 'applyTry' | 'applyConfirm' | 'applyConnectivity' | 'confirm' | 'expire' | 'restart'

/** A configuration by its part: the one handed in, the one on trial, or the last one meant to stay. */
export type Which = 'new' | 'trial' | 'stay'

/** Where a step leads. */
export interface Transition {
  readonly to: TrialState
  /** What the disk holds afterwards. */
  readonly kept: Which
  /** What is meant to stay afterwards. */
  readonly stays: Which
  /** What is noted about the trial that ends. */
  readonly outcome?: 'confirmed' | 'reverted'
}

const applied = {
  apply: { to: 'none', kept: 'new', stays: 'new' },
  applyTry: { to: 'try', kept: 'stay', stays: 'stay' },
  applyConfirm: { to: 'confirm', kept: 'new', stays: 'stay' },
  applyConnectivity: { to: 'connectivity', kept: 'new', stays: 'stay' },
} as const satisfies Partial<Record<Step, Transition>>

/** A configuration handed in during a trial ends that trial. */
const superseded = {
  apply: { ...applied.apply, outcome: 'reverted' },
  applyTry: { ...applied.applyTry, outcome: 'reverted' },
  applyConfirm: { ...applied.applyConfirm, outcome: 'reverted' },
  applyConnectivity: { ...applied.applyConnectivity, outcome: 'reverted' },
} as const satisfies Partial<Record<Step, Transition>>

const confirmed = { to: 'none', kept: 'trial', stays: 'trial', outcome: 'confirmed' } as const
const reverted = { to: 'none', kept: 'stay', stays: 'stay', outcome: 'reverted' } as const

const transitions: Record<TrialState, Partial<Record<Step, Transition>>> = {
  none: { ...applied, restart: { to: 'none', kept: 'stay', stays: 'stay' } },
  try: { ...superseded, confirm: confirmed, expire: reverted, restart: reverted },
  confirm: { ...superseded, confirm: confirmed, expire: reverted, restart: { to: 'confirm', kept: 'trial', stays: 'stay' } },
  connectivity: { ...superseded, confirm: confirmed, expire: reverted, restart: { to: 'connectivity', kept: 'trial', stays: 'stay' } },
}

/** Where a step leads; undefined when it makes no sense in this state. */
export const transition = (state: TrialState, step: Step): Transition | undefined => transitions[state][step]
