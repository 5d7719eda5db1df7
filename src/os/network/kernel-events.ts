import { background } from '../../cosi/background.ts'
import type { Logger } from '../../cosi/log.ts'
import type { Kernel } from '../kernel.ts'

type Subject = import('../../linux/net/rtnetlink.ts').NetworkSubject

/** Between two attempts, in milliseconds: the first pause, and the longest. */
const pauses = [1_000, 60_000] as const

/** Between two rounds that a burst of events asks for, in milliseconds: one of a thousand routes must not cost a thousand looks at all of them. */
const leastBetween = 10

interface Outside {
  readonly wake: () => void
  readonly signal: AbortSignal
  readonly log: Pick<Logger, 'warn' | 'error'>
}

/** Wakes a controller whenever the kernel tells of a change; a subscription that breaks is made anew. */
export const onChange =
  (net: Pick<Kernel['net'], 'watchNetwork'>, subjects: Subject[]) =>
  (outside: Outside): void =>
    wakeOn((signal) => net.watchNetwork(subjects, { signal }), { ...outside, wake: gently(outside.wake) })

/** Passes calls on, those that come close together as one; the first without waiting longer than a turn of the loop. */
function gently(act: () => void): () => void {
  let last = Number.NEGATIVE_INFINITY
  let due = false
  return () => {
    if (due) return
    due = true
    const rest = Math.max(0, last + leastBetween - performance.now())
    setTimeout(() => {
      due = false
      last = performance.now()
      act()
    }, rest)
  }
}

/** Wakes a controller whenever there is something to hear; a subscription that breaks is made anew. */
export function wakeOn(watch: (signal: AbortSignal) => AsyncIterable<unknown>, { wake, signal, log }: Outside): void {
  const follow = async () => {
    let pause: number = pauses[0]
    while (!signal.aborted) {
      try {
        for await (const _ of watch(signal)) {
          pause = pauses[0]
          wake()
        }
      } catch (error) {
        log.warn('watching the network failed, it begins anew', { error: error instanceof Error ? error.message : String(error) })
        await new Promise((resolve) => setTimeout(resolve, pause))
        pause = Math.min(pause * 2, pauses[1])
      }
    }
  }
  background(follow, log, 'watching the network ended')
}
