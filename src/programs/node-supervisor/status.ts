import { readFileSync } from 'node:fs'
import * as v from 'valibot'
import { writeAtomically } from './layout.ts'

const Status = v.object({
  supervisor: v.object({ pid: v.number(), start: v.string() }),
  /** running: its init runs; waiting: a restart is due; stopped: it was shut down. */
  state: v.picklist(['starting', 'running', 'waiting', 'stopped', 'failed']),
  /** Number of restarts since the supervisor started. */
  restarts: v.number(),
  since: v.string(),
  /** How the last run ended. */
  last: v.optional(v.string()),
})

/** The status of a node, as its supervisor writes it. */
export type SupervisorStatus = v.InferOutput<typeof Status>

/** Reads the status a supervisor wrote last; undefined when there is none. */
export function readStatus(file: string): SupervisorStatus | undefined {
  try {
    const result = v.safeParse(Status, JSON.parse(readFileSync(file, 'utf8')))
    return result.success ? result.output : undefined
  } catch {
    return undefined
  }
}

/** Replaces the status of a node. */
export function writeStatus(file: string, status: SupervisorStatus): void {
  writeAtomically(file, JSON.stringify(status))
}
