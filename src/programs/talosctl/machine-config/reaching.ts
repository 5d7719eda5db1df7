/**
 * After a change that may have cut a node off: the client connects again and confirms. A node that is not reached goes back
 * to the configuration before by itself.
 */
import { type Deadline, systemClock } from '../../../cosi/clock.ts'
import { type ProtoTime, toMilliseconds } from '../../../rpc/proto-time.ts'
import type { Cluster } from '../cluster.ts'
import { describe, failedWith, NodeErrors } from '../failure.ts'
import type { Io } from '../io.ts'
import type { ReplyMetadata } from '../reply-metadata.ts'

/** A node's answer that requires a second connection within a time limit. */
export interface Reached {
  readonly metadata?: ReplyMetadata | null | undefined
  /** Number of the configuration in the node's history. */
  readonly id: number
  readonly reachWithin?: ProtoTime | null | undefined
  /** How long the change takes to be in force. */
  readonly reachAfter?: ProtoTime | null | undefined
}

/** How long a node tries a change that may cut it off, as src/os/config/apply/reach.ts has it. In milliseconds. */
const trialTime = 60_000

/** Between two attempts, and for one. In milliseconds. */
const [interval, attemptTimeout] = [1000, 5000]

const milliseconds = (duration: ProtoTime | null | undefined) => (duration ? toMilliseconds(duration) : 0)

/** Confirms what the nodes took for a time only. Throws what was not confirmed. */
export async function confirmReached(io: Io, cluster: Cluster, messages: readonly Reached[], node?: string): Promise<void> {
  const waiting = messages.filter(({ reachWithin }) => reachWithin)
  if (waiting.length === 0) return
  const { nodes } = await cluster.target()
  const tries = waiting.map(async ({ metadata, id, reachWithin, reachAfter }) => {
    await io.pause(milliseconds(reachAfter))
    const name = node ?? (nodes.length > 1 ? metadata?.hostname : nodes[0])
    const deadline = systemClock.deadline(milliseconds(reachWithin) - milliseconds(reachAfter))
    const problem = await reach(io, cluster, { name, deadline, id })
    return problem ? [{ node: name ?? (await cluster.peer()), error: problem }] : []
  })
  const failed = (await Promise.all(tries)).flat()
  if (failed.length > 0) throw new NodeErrors(failed)
}

/**
 * Applies a configuration to one node. A node that gives up its current address may not get its answer through: then it is
 * queried over a new connection for the outcome. Undefined when the answer was lost and the configuration stays.
 */
export async function answered<T>(io: Io, cluster: Cluster, node: string | undefined, take: () => Promise<T>): Promise<T | undefined> {
  const before = await newestShown(cluster, { node, timeout: attemptTimeout })
  const deadline = systemClock.deadline(trialTime)
  try {
    return await take()
  } catch (error) {
    if (before === undefined || !failedWith(error, 'Unavailable')) throw error
    const problem = await reach(io, cluster, { name: node, deadline, lost: { before, error: error as Error } })
    if (problem) throw problem
    return undefined
  }
}

type One = { readonly node: string | undefined; readonly timeout: number }

/** Number of the newest configuration in a node's history, 0 for none. */
async function newestOf(cluster: Cluster, options: One): Promise<number> {
  const [message] = await cluster.ask('ichor.v1.ConfigService/History', {}, options)
  return message?.entries[0]?.id ?? 0
}

/** The same; undefined when the node has no history or does not show it. */
async function newestShown(cluster: Cluster, options: One): Promise<number | undefined> {
  try {
    return await newestOf(cluster, options)
  } catch (error) {
    if (failedWith(error, 'Unavailable')) throw error
    return undefined
  }
}

interface Attempt {
  readonly name: string | undefined
  readonly deadline: Deadline
  /** The configuration; one of which no answer came is the next after another. */
  readonly id?: number
  readonly lost?: { readonly before: number; readonly error: Error }
}

/** Confirms one node's configuration over new connections until it is; why it is not. */
async function reach(io: Io, cluster: Cluster, { name, deadline, id, lost }: Attempt): Promise<Error | undefined> {
  let last = 'no answer'
  while (!deadline.over && !io.signal.aborted) {
    const again = await cluster.again()
    const options = { node: name, newConnection: true, timeout: Math.max(1, Math.min(attemptTimeout, deadline.left)) }
    try {
      const taken = id ?? (await newestOf(again, options))
      // It was not taken at all.
      if (taken === lost?.before) return lost?.error
      return await confirmed(again, taken, options)
    } catch (error) {
      last = describe(error as Error)
    } finally {
      await again.close()
    }
    await io.pause(Math.min(interval, deadline.left))
  }
  const what = lost ? 'if it took the change, it goes' : 'it goes'
  return new Error(
    `the node was not reached again after the change (${last.trim()}): ${what} back to the configuration before by itself; "--no-confirm" keeps such a change`,
  )
}

/** Confirms what waits for it; why the configuration is not in force. */
async function confirmed(again: Cluster, id: number, options: One): Promise<Error | undefined> {
  try {
    await again.ask('ichor.v1.ConfigService/Confirm', {}, options)
    return undefined
  } catch (error) {
    if (!failedWith(error, 'NotFound')) throw error
    return decided(again, id, options)
  }
}

/** Another caller may have been there first, the time was over, or nothing had to be confirmed. */
async function decided(again: Cluster, id: number, options: One): Promise<Error | undefined> {
  const histories = await again.ask('ichor.v1.ConfigService/History', {}, options)
  const entry = histories.flatMap(({ entries }) => entries).find((each) => each.id === id)
  return entry && entry.outcome !== 'reverted'
    ? undefined
    : new Error(`configuration ${id} was reverted${entry?.reason ? `: ${entry.reason}` : ''}`)
}
