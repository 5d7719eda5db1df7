/**
 * The marker of a configuration on trial, on STATE: the kind of trial, what to go back to, and the remaining time. It is written
 * before the configuration takes effect, so that a stop at any moment in between is decided at the next boot.
 *
 * Time counts while the machine runs, by the monotonic clock. The wall clock is not used: it may be stepped at any moment, and a
 * machine without a battery starts in 1970. The remaining time is recorded repeatedly; a boot counts the time since the last
 * record as spent, so that a configuration the machine does not survive is reverted too.
 */
import { createHash } from 'node:crypto'
import * as v from 'valibot'
import type { Machine } from '../../area.ts'

/** The path of the marker. */
export const trialPath = '/system/state/config-trial.json'

/** The longest trial, in milliseconds. */
export const longestTrial = 24 * 3600_000

const milliseconds = v.pipe(v.number(), v.minValue(0), v.maxValue(longestTrial))

const Marker = v.object({
  kind: v.picklist(['try', 'confirm', 'connectivity']),
  /** What to go back to. */
  before: v.string(),
  /** SHA-256 of the configuration on trial. */
  after: v.string(),
  /** The whole time, and the remaining time. */
  within: milliseconds,
  left: v.optional(milliseconds),
  /** Its number in the history; 0 when it could not be recorded. */
  entry: v.number(),
  /** It took a reboot to apply, so it takes one to revert. */
  reboot: v.boolean(),
  /** Its time starts with the next boot, which puts it in force. */
  waits: v.optional(v.boolean(), false),
  /** Of a trial that ends when the machine is reached: the targets that answered before, of which any one is enough. */
  targets: v.optional(v.array(v.object({ host: v.string(), port: v.number(), tls: v.boolean() })), []),
})

/** A configuration on trial. */
export type Trial = v.InferOutput<typeof Marker> & { readonly left: number }

type Dependencies = Pick<Machine, 'log'> & {
  kernel: { files: Pick<Machine['kernel']['files'], 'readTextIfThere' | 'writeAtomic' | 'remove'> }
}

/** SHA-256 of a configuration's text. */
export const digest = (text: string): string => createHash('sha256').update(text).digest('hex')

/** The current trial, if there is one. */
export function readTrial({ kernel: { files }, log }: Dependencies): Trial | undefined {
  const text = files.readTextIfThere(trialPath)
  if (text === undefined) return undefined
  try {
    const marker = v.parse(Marker, JSON.parse(text))
    // A marker of a release that used the wall clock starts again.
    return { ...marker, left: marker.left ?? marker.within }
  } catch (error) {
    log.error('configuration trial marker damaged, ignoring it', { path: trialPath, error })
    return undefined
  }
}

/** Records a trial; from here on a restart decides it. */
export const writeTrial = ({ kernel: { files } }: Dependencies, trial: Trial): Promise<void> =>
  files.writeAtomic(trialPath, JSON.stringify(trial), { mode: 0o600 })

/** Removes the trial, also for the next boot. */
export async function removeTrial({ kernel: { files } }: Dependencies): Promise<void> {
  if (files.readTextIfThere(trialPath) !== undefined) await files.remove(trialPath)
}

/** Interval of recording the remaining time, in milliseconds. */
export const noteInterval = ({ within }: Pick<Trial, 'within'>): number => Math.min(60_000, Math.max(1000, within / 20))

/** The trial at boot. */
export function resumed(trial: Trial): Trial {
  if (trial.waits) return { ...trial, waits: false }
  return { ...trial, left: Math.max(0, trial.left - noteInterval(trial)) }
}
