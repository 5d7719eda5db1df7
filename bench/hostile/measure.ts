/** What others get while a node is under attack, and what its programs hold. */
import { newCSR } from '../../src/pki/request.ts'
import { connect } from '../../src/rpc/client/channel.ts'
import type { TlsOptions } from '../../src/rpc/client/dial.ts'
import { type BenchNode, memoryOf } from '../cluster.ts'

/** Where and as whom to measure. */
export interface Measured {
  readonly node: BenchNode
  readonly tls: TlsOptions
  /** Of the cluster, to renew a worker's certificate by. */
  readonly renewal?: { readonly token: string; readonly ca: string }
  readonly milliseconds: number
}

/** Times in milliseconds. */
export interface Times {
  readonly count: number
  readonly failed: number
  readonly p50: number
  readonly p99: number
  readonly most: number
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

/** Asks, connects and renews for a while, one after the other each, and looks at memory. */
export async function measure({ node, tls, renewal, milliseconds }: Measured): Promise<Figures> {
  const end = performance.now() + milliseconds
  const target = { address: `${node.ip}:50000`, tls }
  const standing = connect(target)
  const version = new Series()
  const connection = new Series()
  const renewed = new Series()
  const ask = (channel: ReturnType<typeof connect>) => channel.unary('machine.MachineService/Version', {}, { deadline: 10_000 })
  const repeat = async (series: Series, pause: number, what: () => Promise<unknown>) => {
    while (performance.now() < end) {
      await series.time(what)
      await Bun.sleep(pause)
    }
  }
  const afresh = async (
    address: string,
    options: Parameters<typeof connect>[1],
    own: TlsOptions,
    use: (channel: ReturnType<typeof connect>) => Promise<unknown>,
  ) => {
    const channel = connect({ address, tls: own }, options)
    try {
      await use(channel)
    } finally {
      channel.close()
    }
  }
  const memory = watchMemory(node)
  const renew = (channel: ReturnType<typeof connect>) => {
    const { csr } = newCSR({ subject: { commonName: 'bench-renewal' }, sans: { dns: ['bench-renewal'] } })
    return channel.unary('securityapi.SecurityService/Certificate', { csr: Buffer.from(csr) }, { deadline: 10_000 })
  }
  await Promise.all([
    repeat(version, 20, () => ask(standing)),
    repeat(connection, 500, () => afresh(target.address, {}, tls, ask)),
    renewal && repeat(renewed, 1000, () => afresh(`${node.ip}:50001`, { metadata: { token: renewal.token } }, { ca: renewal.ca }, renew)),
  ])
  standing.close()
  return { version: version.times(), connection: connection.times(), renewal: renewed.times(), memory: memory() }
}

class Series {
  readonly #taken: number[] = []
  #failed = 0

  async time(what: () => Promise<unknown>): Promise<void> {
    const began = performance.now()
    try {
      await what()
    } catch (error) {
      this.#failed++
      if (process.env.VERBOSE) console.error(String(error))
    }
    this.#taken.push(performance.now() - began)
  }

  times(): Times {
    const sorted = this.#taken.toSorted((a, b) => a - b)
    const at = (part: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0
    return { count: sorted.length, failed: this.#failed, p50: at(0.5), p99: at(0.99), most: sorted.at(-1) ?? 0 }
  }
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
