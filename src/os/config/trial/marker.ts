/**
 * The marker of a configuration on trial, on STATE: which kind of trial, what to go back to, and how much of its time is
 * left. It is written before the configuration takes effect, so that whatever happens in between is decided at the next
 * start.
 *
 * Time counts while the machine runs, by the monotonic clock. The wall clock has no part in it: it may be set at any
 * moment, and a machine without a battery starts in 1970. What is left is noted again and again; a start takes the time
 * since the last note for spent, so that a configuration the machine does not survive goes back too.
 */
import { createHash } from 'node:crypto'
import * as v from 'valibot'
import type { Machine } from '../../area.ts'

/** Where the marker is. */
export const trialPath = '/system/state/config-trial.json'

/** The longest a configuration may go unconfirmed, in milliseconds. */
export const longestTrial = 24 * 3600_000

const milliseconds = v.pipe(v.number(), v.minValue(0), v.maxValue(longestTrial))

const Marker = v.object({
  kind: v.picklist(['try', 'confirm', 'connectivity']),
  /** What to go back to. */
  before: v.string(),
  /** SHA-256 of what is on trial. */
  after: v.string(),
  /** The whole time, and what is left of it. */
  within: milliseconds,
  left: v.optional(milliseconds),
  /** Its number in the history; 0 when it could not be noted there. */
  entry: v.number(),
  /** It took a reboot to apply, so it takes one to go back. */
  reboot: v.boolean(),
  /** Its time begins with the next start, which puts it in force. */
  waits: v.optional(v.boolean(), false),
  /** Of a trial that ends when the machine is reached: who answered before, where an answer from any of them will do. */
  targets: v.optional(v.array(v.object({ host: v.string(), port: v.number(), tls: v.boolean() })), []),
})

/** A configuration on trial. */
export type Trial = v.InferOutput<typeof Marker> & { readonly left: number }

type Dependencies = Pick<Machine, 'log'> & {
  kernel: { files: Pick<Machine['kernel']['files'], 'readTextIfThere' | 'writeAtomic' | 'remove'> }
}

/** SHA-256 of a configuration's text. */
export const digest = (text: string): string => createHash('sha256').update(text).digest('hex')

/** The trial that is on, if one is. */
export function readTrial({ kernel: { files }, log }: Dependencies): Trial | undefined {
  const text = files.readTextIfThere(trialPath)
  if (text === undefined) return undefined
  try {
    const marker = v.parse(Marker, JSON.parse(text))
    // One of a release that went by the wall clock begins again.
    return { ...marker, left: marker.left ?? marker.within }
  } catch (error) {
    log.error('marker of a configuration trial is broken and is ignored', { path: trialPath, error })
    return undefined
  }
}

/** Notes a trial; from here on a restart decides it. */
export const writeTrial = ({ kernel: { files } }: Dependencies, trial: Trial): Promise<void> =>
  files.writeAtomic(trialPath, JSON.stringify(trial), { mode: 0o600 })

/** Ends the trial for the next start too. */
export async function removeTrial({ kernel: { files } }: Dependencies): Promise<void> {
  if (files.readTextIfThere(trialPath) !== undefined) await files.remove(trialPath)
}

/** Milliseconds between two notes of the time that is left. */
export const noteInterval = ({ within }: Pick<Trial, 'within'>): number => Math.min(60_000, Math.max(1000, within / 20))

/** The trial as a start finds it. */
export function resumed(trial: Trial): Trial {
  if (trial.waits) return { ...trial, waits: false }
  return { ...trial, left: Math.max(0, trial.left - noteInterval(trial)) }
}
