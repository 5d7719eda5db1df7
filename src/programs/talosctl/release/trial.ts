/** The outcome of a node's restart with another release: marked good, or rolled back. */
import { RpcError } from '../../../rpc/status.ts'
import { bootOf } from '../action/follow.ts'
import type { Cluster } from '../cluster.ts'
import type { Io } from '../io.ts'
import { specOf } from '../resource/definition.ts'

/** Keys of META, as resources name them. */
const trialKey = '0x06'
const failuresKey = '0x20'

/** What a node was like before its upgrade. */
export interface BeforeTrial {
  /** When its life began. */
  readonly began: string | undefined
  /** The releases that failed on it, as it remembers them. */
  readonly failures: string
}

/** What to compare with after an upgrade; a node that does not say is taken for one without failures. */
export async function beforeTrial(io: Io, cluster: Cluster, node: string | undefined): Promise<BeforeTrial> {
  const life = await bootOf(cluster, node, io.signal)
  return { began: life?.began, failures: (await metaKey(cluster, node, failuresKey).catch(() => undefined)) ?? '' }
}

/** How a wait goes on. */
export interface TrialWait {
  readonly before: BeforeTrial
  readonly timeout: number
  report(state: string): void
}

/** Waits until a node has restarted and its release is marked good. Throws the reason when it was rolled back. */
export async function awaitTrial(
  io: Io,
  cluster: Cluster,
  node: string | undefined,
  { before, timeout, report }: TrialWait,
): Promise<void> {
  const end = performance.now() + timeout
  let last = 'restarting'
  for (;;) {
    io.signal.throwIfAborted()
    const life = await bootOf(cluster, node, io.signal)
    if (life && life.began !== before.began) {
      last = `started, ${life.stage}`
      try {
        if ((await metaKey(cluster, node, trialKey)) === undefined) {
          const now = (await metaKey(cluster, node, failuresKey)) ?? ''
          if (now !== before.failures) throw new Error(`it went back: ${reason(now)}`)
          report('upgraded, marked good')
          return
        }
        last = `on trial, ${life.stage}`
      } catch (error) {
        if (!(error instanceof RpcError)) throw error
      }
    }
    report(last)
    if (performance.now() > end) throw new Error(`no end within ${Math.round(timeout / 1000)} s, last seen: ${last}`)
    await io.pause(1000)
  }
}

function reason(failures: string): string {
  try {
    const [{ version = '', why = '' } = {}] = JSON.parse(failures) as { version?: string; why?: string }[]
    return `${version} failed: ${why}`
  } catch {
    return 'see "talosctl get metakeys"'
  }
}

/** A value of META; undefined when there is none. */
async function metaKey(cluster: Cluster, node: string | undefined, id: string): Promise<string | undefined> {
  const request = { namespace: 'runtime', type: 'MetaKeys.runtime.talos.dev', id }
  try {
    const { resource } = await cluster.unary('cosi.resource.State/Get', request, { node, timeout: 5000 })
    return ((resource && specOf(resource)) as { value?: string } | undefined)?.value
  } catch (error) {
    if (error instanceof RpcError && error.status === 'NotFound') return undefined
    throw error
  }
}
