/** A node's life, whatever it is made of: it is run again whenever it ends, until it was shut down or the keeper is told to end. */

import type { ConsoleLog } from './console-log.ts'

/** How a run of a node ended, and whether it is to be started again. */
export type Ending = { again: boolean; text: string }

/** What keeping a node running takes. */
export interface Life {
  console: ConsoleLog
  signal: AbortSignal
  report(state: 'starting' | 'running' | 'waiting' | 'stopped', restarts: number, last?: string): void
  /** Takes away what an earlier run left. */
  clean(): Promise<void>
  /** Runs the node until it ends by itself, or in answer to the signal; calls back once it runs. */
  once(running: () => void): Promise<Ending>
}

const SHORT_LIFE = 10_000
const LONGEST_PAUSE = 10_000

/** Runs a node until it is shut down from inside or the signal says so. */
export async function runAgain(life: Life): Promise<void> {
  let pause = 0
  let restarts = 0
  let last: string | undefined
  while (!life.signal.aborted) {
    life.report('starting', restarts, last)
    await life.clean()
    const started = performance.now()
    const ending = await life.once(() => life.report('running', restarts, last))
    last = ending.text
    life.console.note(`node ended: ${ending.text}`)
    if (!ending.again || life.signal.aborted) break
    pause = performance.now() - started < SHORT_LIFE ? Math.min(LONGEST_PAUSE, pause * 2 || 250) : 0
    restarts++
    life.report('waiting', restarts, last)
    await sleep(pause, life.signal)
  }
  await life.clean()
  life.report('stopped', restarts, last)
}

function sleep(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(done, ms)
    function done() {
      clearTimeout(timer)
      signal.removeEventListener('abort', done)
      resolve()
    }
    signal.addEventListener('abort', done)
  })
}
