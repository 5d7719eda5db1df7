import { pause } from '../../../timing/pause.ts'
import { within } from '../../../timing/within.ts'
import { messageOf } from '../../../wire/error-message.ts'
import type { HealthStep } from './steps.ts'
import type { ClusterView, MachineView } from './view.ts'

/** The progress of a step: it starts, fails for now with a reason, holds, or is skipped. */
export interface HealthEvent {
  readonly step: string
  readonly state: 'begins' | 'fails' | 'holds' | 'skipped'
  /** Why it does not hold. */
  readonly reason?: string
}

/** How the checks are run. */
export interface HealthOptions {
  /** Milliseconds for all steps together. */
  readonly timeout: number
  /** Milliseconds between two attempts. */
  readonly interval?: number
  readonly signal?: AbortSignal
  onEvent(event: HealthEvent): void
}

/** The cluster did not become healthy in time; the message is the last reason. */
export class Unhealthy extends Error {
  override name = 'Unhealthy'
  constructor(
    readonly step: string,
    readonly reason: string,
  ) {
    super(`waiting for ${step}: ${reason}`)
  }
}

/** Waits until every step holds, one after the other. Throws Unhealthy with the last reason on timeout. */
export async function awaitHealth(steps: readonly HealthStep[], view: ClusterView, options: HealthOptions): Promise<void> {
  const { timeout, interval = 300, signal, onEvent } = options
  const end = performance.now() + timeout
  for (const { name, check } of steps) {
    onEvent({ step: name, state: 'begins' })
    let reported = ''
    for (;;) {
      signal?.throwIfAborted()
      const outcome = await attempt(check, view, Math.max(1, end - performance.now()))
      if (typeof outcome !== 'string') {
        onEvent({ step: name, state: outcome.skipped ? 'skipped' : 'holds' })
        break
      }
      if (outcome !== reported) onEvent({ step: name, state: 'fails', reason: outcome })
      reported = outcome
      if (performance.now() + interval > end) throw new Unhealthy(name, outcome)
      await pause(interval, signal)
    }
  }
}

/** The text of an event: "waiting for X: OK". */
export function healthLine({ step, state, reason }: HealthEvent): string {
  return `waiting for ${step}: ${{ begins: '...', holds: 'OK', skipped: 'SKIP', fails: reason }[state]}`
}

async function attempt(check: HealthStep['check'], view: ClusterView, left: number): Promise<string | { skipped: boolean }> {
  const limit = Math.min(left, 15_000)
  const unanswered: string[] = []
  const late = () => {
    const whose = unanswered.length > 0 ? ` from ${[...new Set(unanswered)].join(', ')}` : ''
    return new Error(`no answer${whose} within ${Math.ceil(limit / 1000)} s`)
  }
  try {
    return { skipped: (await within(check(naming(view, unanswered)), limit, late)) === 'skip' }
  } catch (error) {
    return messageOf(error).split('\n')[0] || 'unknown'
  }
}

/** The same view, which records the pending requests in `unanswered` and names in each failure where it came from. */
function naming(view: ClusterView, unanswered: string[]): ClusterView {
  const from = async <T>(who: string, answer: Promise<T>): Promise<T> => {
    unanswered.push(who)
    try {
      return await answer
    } catch (error) {
      throw new Error(`${who}: ${messageOf(error)}`, { cause: error })
    } finally {
      unanswered.splice(unanswered.indexOf(who), 1)
    }
  }
  const machine = (address: string): MachineView => {
    const own = view.machine(address)
    return {
      services: () => from(address, own.services()),
      etcdMembers: () => from(address, own.etcdMembers()),
      memory: () => from(address, own.memory()),
      mounts: () => from(address, own.mounts()),
      resources: (namespace, type) => from(address, own.resources(namespace, type)),
    }
  }
  const { controlPlanes, workers } = view
  return { controlPlanes, workers, machine, kubernetes: () => from('Kubernetes', view.kubernetes()) }
}
