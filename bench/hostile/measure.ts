/** What others get while a node is under attack, and what its programs hold. */
import { connect } from '../../src/rpc/client/channel.ts'
import type { TlsOptions } from '../../src/rpc/client/dial.ts'
import { type BenchNode, memoryOf } from '../cluster.ts'
import { type Renewing, renewals } from './renewals.ts'
import { Series, type Times } from './series.ts'

/** Where and as whom to measure. */
export interface Measured {
  readonly node: BenchNode
  readonly tls: TlsOptions
  /** How a worker's certificate is renewed meanwhile. */
  readonly renewal?: Omit<Renewing, 'milliseconds'>
  readonly milliseconds: number
}

/** What came of it. */
export interface Figures {
  readonly version: Times
  readonly connection: Times
  readonly renewal: Times
  readonly memory: ReadonlyMap<string, { before: number; peak: number; restarted: boolean }>
}

const limit = 128 << 20
const growth = 64 << 20

/** Bounds that the figures do not keep. */
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

/** Calls, connects and renews for a while, one after another each, and records memory. */
export async function measure({ node, tls, renewal, milliseconds }: Measured): Promise<Figures> {
  const end = performance.now() + milliseconds
  const target = { address: `${node.ip}:50000`, tls }
  const standing = connect(target)
  const version = new Series()
  const connection = new Series()
  const ask = (channel: ReturnType<typeof connect>) => channel.unary('machine.MachineService/Version', {}, { deadline: 10_000 })
  const repeat = async (series: Series, pause: number, what: () => Promise<unknown>) => {
    while (performance.now() < end) {
      await series.time(what)
      await Bun.sleep(pause)
    }
  }
  const afresh = async () => {
    const channel = connect(target)
    try {
      await ask(channel)
    } finally {
      channel.close()
    }
  }
  const memory = watchMemory(node)
  const [renewed] = await Promise.all([
    renewal ? renewals({ ...renewal, milliseconds }) : new Series().times(),
    repeat(version, 20, () => ask(standing)),
    repeat(connection, 500, afresh),
  ])
  standing.close()
  return { version: version.times(), connection: connection.times(), renewal: renewed, memory: memory() }
}

/** Samples what a node's programs have for themselves; the result ends it. */
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
