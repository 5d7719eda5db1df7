/**
 * Follows a node after a reboot, shutdown or reset was requested: its events as long as it sends them, then
 * polls it until it is gone, or back with a new boot.
 */

import { background } from '../../../cosi/background.ts'
import { silent } from '../../../cosi/log.ts'
import { RpcError } from '../../../rpc/status.ts'
import type { Cluster } from '../cluster.ts'
import { describeEvent, eventsOf, sequenceFailure } from '../event.ts'
import type { Io } from '../io.ts'
import { rfc3339 } from '../output/units.ts'
import { specOf } from '../resource/definition.ts'

/** When the wait is over. */
export type Goal = 'back' | 'gone'

/** One boot of a node: the creation time of its status distinguishes it from the next. */
export interface Boot {
  readonly began: string
  readonly stage: string
}

/** How a wait goes on. */
export interface FollowOptions {
  readonly goal: Goal
  readonly actorId: string
  readonly before: Boot | undefined
  readonly timeout: number
  readonly interval?: number
  report(state: string): void
}

/** The life a node is in; nothing when it does not answer. */
export async function bootOf(cluster: Cluster, node: string | undefined, signal?: AbortSignal): Promise<Boot | undefined> {
  try {
    const request = { namespace: 'runtime', type: 'MachineStatuses.runtime.talos.dev', id: 'machine' }
    const { resource } = await cluster.unary('cosi.resource.State/Get', request, { node, timeout: 3000, signal })
    const { stage } = ((resource && specOf(resource)) ?? {}) as { stage?: string }
    return { began: rfc3339(resource?.metadata?.created), stage: stage ?? 'unknown' }
  } catch (error) {
    if (error instanceof RpcError && error.status !== 'Canceled') return undefined
    throw error
  }
}

/** Waits until the node is where the action takes it. Throws as soon as the node gives it up, or with the last thing seen when time is up. */
export async function follow(io: Io, cluster: Cluster, node: string | undefined, options: FollowOptions): Promise<void> {
  const { goal, before, timeout, report, interval = 500 } = options
  const end = performance.now() + timeout
  const watching = new AbortController()
  const signal = AbortSignal.any([io.signal, watching.signal])
  let last = 'waiting for events'
  const say = (state: string) => {
    last = state
    report(state)
  }
  say(last)
  let failure: string | undefined
  const fail = (reason: string) => {
    failure = reason
  }
  background(events(cluster, node, options.actorId, { say, fail }, signal), silent) // the loop below sees what matters
  try {
    for (let missed = 0; ; ) {
      io.signal.throwIfAborted()
      const life = await bootOf(cluster, node, io.signal)
      missed = life ? 0 : missed + 1
      const reborn = life !== undefined && life.began !== before?.began
      if (!life && missed === 2) say('unavailable')
      if (goal === 'gone' && missed >= 3) return
      if (goal === 'gone' && reborn) throw new Error(`it started again instead of staying down, stage "${life.stage}"`)
      if (goal === 'back' && reborn) {
        say(life.stage)
        if (life.stage === 'running' || life.stage === 'maintenance') return
      }
      if (failure !== undefined) throw new Error(failure)
      if (performance.now() > end) throw new Error(`no end within ${Math.round(timeout / 1000)} s, last seen: ${last}`)
      await io.pause(interval)
    }
  } finally {
    watching.abort()
  }
}

async function events(
  cluster: Cluster,
  node: string | undefined,
  actorId: string,
  { say, fail }: { say(state: string): void; fail(reason: string): void },
  signal: AbortSignal,
): Promise<void> {
  const request = { withActorId: actorId, tailEvents: -1 }
  try {
    for await (const { data } of eventsOf(cluster, request, { node, signal })) {
      const failure = sequenceFailure(data)
      if (failure !== undefined) return fail(failure)
      const { source, message } = describeEvent(data)
      if (message !== '') say(`${source}: ${message}`)
    }
  } catch {
    // the node is shutting down: polling it shows the rest
  }
}
