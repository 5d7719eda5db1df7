/** Runs a node, container or machine, again whenever it stops, until it was shut down or the supervisor is stopped. */

import { pause } from '../../timing/pause.ts'
import type { ConsoleLog } from './console-log.ts'

/** How a run of a node ended, and whether the node is started again. */
export type StopReason = { again: boolean; text: string }

/** What supervising a node needs. */
export interface SupervisedRun {
  console: ConsoleLog
  signal: AbortSignal
  report(state: 'starting' | 'running' | 'waiting' | 'stopped', restarts: number, last?: string): void
  /** Removes what an earlier run left behind. */
  clean(): Promise<void>
  /** Runs the node until it stops by itself or on the signal; calls `running` once it runs. */
  once(running: () => void): Promise<StopReason>
}

const shortRun = 10_000
const maxDelay = 10_000

/** Runs a node until it is shut down from inside or the signal aborts. */
export async function restartUntilStopped(run: SupervisedRun): Promise<void> {
  let delay = 0
  let restarts = 0
  let last: string | undefined
  while (!run.signal.aborted) {
    run.report('starting', restarts, last)
    await run.clean()
    const started = performance.now()
    const reason = await run.once(() => run.report('running', restarts, last))
    last = reason.text
    run.console.note(`node ended: ${reason.text}`)
    if (!reason.again || run.signal.aborted) break
    delay = performance.now() - started < shortRun ? Math.min(maxDelay, delay * 2 || 250) : 0
    restarts++
    run.report('waiting', restarts, last)
    await pause(delay, run.signal)
  }
  await run.clean()
  run.report('stopped', restarts, last)
}
