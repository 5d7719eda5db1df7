import { background } from '../../../cosi/background.ts'
import { silent } from '../../../cosi/log.ts'
import type { Cluster } from '../cluster.ts'
import { NodeErrors } from '../failure.ts'
import type { Io } from '../io.ts'
import type { ReplyMetadata } from '../reply-metadata.ts'
import { bootOf, follow, type Goal } from './follow.ts'
import { NodeProgress, type ProgressMode } from './progress.ts'

/** The flags of commands that take nodes down. */
export interface ActionFlags {
  wait: boolean
  debug?: boolean
  timeout: number
  progress?: ProgressMode
}

type Started = { metadata?: ReplyMetadata | null; actorId: string }

/** Sends an action to all named nodes and, unless waiting is disabled, waits for each of them. */
export async function runAction(io: Io, cluster: Cluster, flags: ActionFlags, goal: Goal, start: () => Promise<Started[]>): Promise<void> {
  const nodes = await cluster.nodes()
  const targets: (string | undefined)[] = nodes.length > 0 ? [...nodes] : [undefined]
  const before = flags.wait ? await Promise.all(targets.map((node) => bootOf(cluster, node))) : []
  const started = await start()
  if (!flags.wait) return
  const peer = await cluster.peer()
  const progress = new NodeProgress(io, flags.progress ?? 'auto')
  const failed: { node: string; error: Error }[] = []
  const done = new AbortController()
  if (flags.debug) background(kernelLog(io, cluster, done.signal), silent)
  await Promise.all(
    started.map(async (message) => {
      const name = cluster.nodeOf(message, peer)
      const node = nodes.length > 0 ? name : undefined
      const index = Math.max(0, targets.indexOf(node))
      try {
        await follow(io, cluster, node, {
          goal,
          actorId: message.actorId,
          before: before[index],
          timeout: flags.timeout,
          report: (state) => progress.update(name, state),
        })
        progress.update(name, goal === 'gone' ? 'down' : 'back and running')
      } catch (error) {
        if (io.signal.aborted) throw error
        failed.push({ node: name, error: error as Error })
      }
    }),
  ).finally(() => done.abort())
  if (failed.length > 0) throw new NodeErrors(failed)
}

async function kernelLog(io: Io, cluster: Cluster, signal: AbortSignal): Promise<void> {
  const peer = await cluster.peer()
  try {
    for await (const data of cluster.stream('machine.MachineService/Dmesg', { follow: true, tail: true }, { signal })) {
      io.stderr.write(`${cluster.nodeOf(data, peer)}: ${Buffer.from(data.bytes).toString('utf8')}`)
    }
  } catch {
    // it ends with the node
  }
}
