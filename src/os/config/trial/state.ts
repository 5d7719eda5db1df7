/**
 * The states of the machine configuration.
 *
 * Without a trial (`none`) the configuration on disk is the permanent one. `apply` replaces it. `try` puts another one in force and
 * leaves the disk as it is: it ends with its time, or with the machine. `provisional` writes the new one to the disk too, to be
 * confirmed by the operator (`confirm`) or by a peer that still reaches the machine (`connectivity`); these trials survive restarts,
 * with the rest of their time.
 *
 * `confirm` makes the configuration on trial permanent. `expire` goes back to the last permanent one, and so does a `restart` during
 * a try. A configuration that is applied during a trial ends it; a new trial still goes back to the last permanent one, never to one
 * that was on trial itself. Whether it must be tried also depends on its difference from that one: the change on trial may have cut
 * the machine off already.
 *
 * The disk is written before the resources, and a trial's marker before the configuration: wherever the machine stops in between,
 * the next start finds either the marker, and goes back, or the new configuration without one, which stays.
 */

/** The current trial. */
export type TrialState = 'none' | 'try' | 'confirm' | 'connectivity'

/** The events. The first four submit a configuration. */
export type Step = 'apply' | 'applyTry' | 'applyConfirm' | 'applyConnectivity' | 'confirm' | 'expire' | 'restart'

/** A configuration by its role: the submitted one, the one on trial, or the last permanent one. */
export type Which = 'new' | 'trial' | 'stay'

/** The result of a step. */
export interface Transition {
  readonly to: TrialState
  /** What the disk holds afterwards. */
  readonly kept: Which
  /** The permanent configuration afterwards. */
  readonly stays: Which
  /** The recorded outcome of the trial that ends. */
  readonly outcome?: 'confirmed' | 'reverted'
}

const applied = {
  apply: { to: 'none', kept: 'new', stays: 'new' },
  applyTry: { to: 'try', kept: 'stay', stays: 'stay' },
  applyConfirm: { to: 'confirm', kept: 'new', stays: 'stay' },
  applyConnectivity: { to: 'connectivity', kept: 'new', stays: 'stay' },
} as const satisfies Partial<Record<Step, Transition>>

/** A configuration submitted during a trial ends that trial. */
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

/** The result of a step; undefined when it is not possible in this state. */
export const transition = (state: TrialState, step: Step): Transition | undefined => transitions[state][step]
