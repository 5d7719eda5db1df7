import { background } from '../../cosi/background.ts'
import type { Logger } from '../../cosi/log.ts'
import { pause } from '../../timing/pause.ts'
import { messageOf } from '../../wire/error-message.ts'
import type { Kernel } from '../kernel.ts'

type Subject = import('../../linux/net/rtnetlink.ts').NetworkSubject

/** Retry interval of a failed subscription in milliseconds: the first, and the maximum. */
const retryIntervals = [1_000, 60_000] as const

/** Minimum time between two reconciles triggered by a burst of events, in milliseconds. Without it, a thousand new routes cause a thousand full reads. */
const leastBetween = 10

interface Outside {
  readonly wake: () => void
  readonly signal: AbortSignal
  readonly log: Pick<Logger, 'warn' | 'error'>
}

/** Wakes a controller on every kernel notification for its subjects. A broken subscription is renewed. */
export const onChange =
  (net: Pick<Kernel['net'], 'watchNetwork'>, subjects: Subject[]) =>
  (outside: Outside): void =>
    wakeOn((signal) => net.watchNetwork(subjects, { signal }), { ...outside, wake: coalesced(outside.wake) })

/** Coalesces calls that come close together. The first call is passed on in the same turn of the event loop. */
function coalesced(act: () => void): () => void {
  let last = Number.NEGATIVE_INFINITY
  let due = false
  return () => {
    if (due) return
    due = true
    const wait = Math.max(0, last + leastBetween - performance.now())
    setTimeout(() => {
      due = false
      last = performance.now()
      act()
    }, wait)
  }
}

/** Wakes a controller for every item `watch` yields. A broken subscription is renewed. */
export function wakeOn(watch: (signal: AbortSignal) => AsyncIterable<unknown>, { wake, signal, log }: Outside): void {
  const follow = async () => {
    let retryInterval: number = retryIntervals[0]
    while (!signal.aborted) {
      try {
        for await (const _ of watch(signal)) {
          retryInterval = retryIntervals[0]
          wake()
        }
      } catch (error) {
        log.warn('network watch failed, will retry', { error: messageOf(error) })
        await pause(retryInterval, signal)
        retryInterval = Math.min(retryInterval * 2, retryIntervals[1])
      }
    }
  }
  background(follow, log, 'watching the network ended')
}
