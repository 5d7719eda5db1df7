import { readFileSync } from 'node:fs'
import * as v from 'valibot'
import { writeAtomically } from './layout.ts'

const Status = v.object({
  keeper: v.object({ pid: v.number(), start: v.string() }),
  /** running: its init runs; waiting: it will be started again in a moment; stopped: it was shut down. */
  state: v.picklist(['starting', 'running', 'waiting', 'stopped', 'failed']),
  /** How often it was started again since the keeper came. */
  restarts: v.number(),
  since: v.string(),
  /** How the last run ended. */
  last: v.optional(v.string()),
})

/** What a keeper says about its node. */
export type KeeperStatus = v.InferOutput<typeof Status>

/** Reads what a keeper wrote last; undefined when it has not yet. */
export function readStatus(file: string): KeeperStatus | undefined {
  try {
    const result = v.safeParse(Status, JSON.parse(readFileSync(file, 'utf8')))
    return result.success ? result.output : undefined
  } catch {
    return undefined
  }
}

/** Replaces what a keeper says. */
export function writeStatus(file: string, status: KeeperStatus): void {
  writeAtomically(file, JSON.stringify(status))
}
