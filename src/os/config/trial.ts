/**
 * A configuration that goes back by itself: one that is tried, which lives until the machine ends, or one that waits to
 * be confirmed, which is kept and outlives restarts. The marker on STATE says which, what to go back to and when, and is
 * written before the configuration takes effect, so that whatever happens in between is decided at the next start.
 */
import { createHash } from 'node:crypto'
import * as v from 'valibot'
import type { Machine } from '../area.ts'
import { ConfigHistory } from './history.ts'
import { keepConfig, statePath } from './keep.ts'

/** Where the marker lies. */
export const trialPath = '/system/state/config-trial.json'

/** The longest a configuration may go unconfirmed, in milliseconds. */
export const longestTrial = 24 * 3600_000

const Marker = v.object({
  kind: v.picklist(['try', 'confirm']),
  /** What to go back to. */
  before: v.string(),
  /** SHA-256 of what is on trial. */
  after: v.string(),
  /** By the wall clock, in milliseconds. */
  since: v.number(),
  within: v.pipe(v.number(), v.minValue(0), v.maxValue(longestTrial)),
  /** Its number in the history; 0 when it could not be noted there. */
  entry: v.number(),
  /** It took a reboot to apply, so it takes one to go back. */
  reboot: v.boolean(),
})

/** A configuration on trial. */
export type Trial = v.InferOutput<typeof Marker>

type Parts = Pick<Machine, 'log'> & { kernel: { files: Pick<Machine['kernel']['files'], 'readTextIfThere' | 'writeAtomic' | 'remove'> } }

/** SHA-256 of a configuration's text. */
export const digest = (text: string): string => createHash('sha256').update(text).digest('hex')

/** The trial that is on, if one is. */
export function readTrial({ kernel: { files }, log }: Parts): Trial | undefined {
  const text = files.readTextIfThere(trialPath)
  if (text === undefined) return undefined
  try {
    return v.parse(Marker, JSON.parse(text))
  } catch (error) {
    log.error('marker of a configuration on trial is broken and is left out of account', { path: trialPath, error })
    return undefined
  }
}

/** Notes a trial; from here on a restart decides it. */
export const writeTrial = ({ kernel: { files } }: Parts, trial: Trial): Promise<void> =>
  files.writeAtomic(trialPath, JSON.stringify(trial), { mode: 0o600 })

/** Ends the trial for the next start too. */
export async function removeTrial({ kernel: { files } }: Parts): Promise<void> {
  if (files.readTextIfThere(trialPath) !== undefined) await files.remove(trialPath)
}

/** Milliseconds left; a wall clock that went back counts as no time passed. */
export function remaining({ since, within }: Trial, now: number): number {
  return now < since ? within : Math.max(0, within - (now - since))
}

/** Decides at a start what the marker left open, before any configuration is read. */
export async function settleTrial(parts: Parts, now: Date): Promise<void> {
  const trial = readTrial(parts)
  if (!trial) {
    await removeTrial(parts)
    return
  }
  const { log, kernel } = parts
  const history = new ConfigHistory(kernel.files, log)
  const kept = kernel.files.readTextIfThere(statePath)
  if (trial.kind === 'try') {
    log.warn('the machine restarted while a configuration was on trial, the one before is in force again')
    await history.decide(trial.entry, 'reverted', now, 'the machine restarted')
    await removeTrial(parts)
  } else if (kept === undefined || digest(kept) !== trial.after) {
    // It never got as far as being kept: what is kept is the one before.
    log.warn('the machine restarted before a configuration was kept, the one before stays in force')
    await history.decide(trial.entry, 'reverted', now, 'the machine restarted before it was kept')
    await removeTrial(parts)
  } else if (remaining(trial, now.getTime()) === 0) {
    log.warn('a configuration was not confirmed in time, the one before is in force again')
    await keepConfig(kernel.files, trial.before)
    await history.decide(trial.entry, 'reverted', now, 'it was not confirmed in time')
    await removeTrial(parts)
  } else log.warn('the configuration waits to be confirmed', { left: `${Math.round(remaining(trial, now.getTime()) / 1000)}s` })
}
