/** Measures latency for other clients while a node is under attack, and the memory of its programs. */
import { connect } from '../../src/rpc/client/channel.ts'
import type { TlsOptions } from '../../src/rpc/client/dial.ts'
import { type BenchNode, memoryOf } from '../cluster.ts'
import { type Renewing, renewals } from './renewals.ts'
import { Series, type Times } from './series.ts'

/** The node to measure, and the credentials to use. */
export interface Measured {
  readonly node: BenchNode
  readonly tls: TlsOptions
  /** The renewal of a worker's certificate during the attack. */
  readonly renewal?: Omit<Renewing, 'milliseconds'>
  readonly milliseconds: number
}

/** The result of a measurement. */
export interface Figures {
  readonly version: Times
  readonly connection: Times
  readonly renewal: Times
  readonly memory: ReadonlyMap<string, { before: number; peak: number; restarted: boolean }>
}

const limit = 128 << 20
const growth = 64 << 20

/** Bounds that the figures exceed, as messages. */
export function bounds({ version, connection, renewal, memory }: Figures): string[] {
  const found: string[] = []
  if (version.p99 >= 250) found.push(`version p99 is ${version.p99.toFixed(0)} ms`)
  for (const [what, { failed }] of Object.entries({ version, connection, renewal }))
    if (failed > 0) found.push(`${failed} of ${what} failed`)
  for (const [program, { before, peak, restarted }] of memory) {
    if (restarted) found.push(`${program} ended`)
    if (program === 'init' && peak - before >= growth) found.push(`init grew by ${(peak - before) >> 20} MiB`)
    if (program !== 'init' && peak >= limit) found.push(`${program} has ${peak >> 20} MiB`)
  }
  return found
}

/** Calls, connects and renews, each in its own sequence, for the given time, and records memory. */
export async function measure({ node, tls, renewal, milliseconds }: Measured): Promise<Figures> {
  const end = performance.now() + milliseconds
  const target = { address: `${node.ip}:50000`, tls }
  const standing = connect(target)
  const version = new Series()
  const connection = new Series()
  const versionCall = (channel: ReturnType<typeof connect>) => channel.unary('machine.MachineService/Version', {}, { deadline: 10_000 })
  const repeat = async (series: Series, delay: number, what: () => Promise<unknown>) => {
    while (performance.now() < end) {
      await series.time(what)
      await Bun.sleep(delay)
    }
  }
  const onNewConnection = async () => {
    const channel = connect(target)
    try {
      await versionCall(channel)
    } finally {
      channel.close()
    }
  }
  const memory = watchMemory(node)
  const [renewed] = await Promise.all([
    renewal ? renewals({ ...renewal, milliseconds }) : new Series().times(),
    repeat(version, 20, () => versionCall(standing)),
    repeat(connection, 500, onNewConnection),
  ])
  standing.close()
  return { version: version.times(), connection: connection.times(), renewal: renewed, memory: memory() }
}

/** Samples the anonymous memory of a node's programs until the returned function is called. */
function watchMemory(node: BenchNode): () => Map<string, { before: number; peak: number; restarted: boolean }> {
  const begun = node.processes()
  const seen = new Map(
    [...begun].map(([program, pid]) => {
      const before = memoryOf(pid).anonymous
      return [program, { pid, before, peak: before, restarted: false }]
    }),
  )
  const sample = setInterval(() => {
    for (const each of seen.values()) {
      try {
        each.peak = Math.max(each.peak, memoryOf(each.pid).anonymous)
      } catch {
        each.restarted = true
      }
    }
  }, 200)
  return () => {
    clearInterval(sample)
    return new Map([...seen].map(([program, { before, peak, restarted }]) => [program, { before, peak, restarted }]))
  }
}
