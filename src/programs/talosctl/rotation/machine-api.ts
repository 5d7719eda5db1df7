/** The authority of the machine API: with which credentials machines are reached in each round, and how its result is proven. */

import { signedBy } from '../../../pki/certificate.ts'
import { tlsKey } from '../../../pki/key.ts'
import { RpcError } from '../../../rpc/status.ts'
import { Cluster } from '../cluster.ts'
import { NodeErrors } from '../failure.ts'
import type { Io } from '../io.ts'
import { applyConfig, readConfig, resourceOf } from '../machine/machine.ts'
import { within } from '../machine/within.ts'
import type { Target } from '../target.ts'
import { advance, stageOf } from './authority.ts'
import { checkCallable, inOrder, type Machines, together } from './machines.ts'
import type { AuthorityRound, Generation } from './rounds.ts'
import type { RotationSteps } from './run.ts'
import type { AuthorityState } from './state.ts'

/** How long a machine may take to serve with what it was given, in milliseconds. */
const proofTimeout = 60_000

const text = (base64: string) => Buffer.from(base64, 'base64').toString('utf8')

/** Connections with the credentials of either authority. */
export class Connections {
  readonly #io: Io
  readonly #target: Target
  readonly #state: AuthorityState

  constructor(io: Io, target: Target, state: AuthorityState) {
    this.#io = io
    this.#target = target
    this.#state = state
  }

  get endpoints(): readonly string[] {
    return this.#target.endpoints
  }

  /** A new connection as a client of one authority, which trusts servers of these authorities only. */
  open(client: Generation, trust: readonly Generation[], endpoint?: string): Cluster {
    const { old, next, oldClient, nextClient } = this.#state
    const pair = client === 'old' ? oldClient : nextClient
    const ca = trust.map((one) => text((one === 'old' ? old : next).crt)).join('\n')
    const tls = { ca, cert: text(pair.crt), key: tlsKey(text(pair.key)) }
    // The machines are named in each call: a call without one would go to all of them.
    const { cluster, source } = this.#target
    return new Cluster(this.#io, { endpoints: endpoint ? [endpoint] : this.#target.endpoints, nodes: [], tls, cluster, source })
  }

  /**
   * A connection over which an attempt succeeds, and its result. Clients of the old authority are accepted until the last round,
   * those of the new one from the first one on: at every stage one of the two reaches every machine.
   */
  async reaching<T>(attempt: (cluster: Cluster) => Promise<T>): Promise<{ cluster: Cluster; value: T }> {
    const failures: { what: string; error: unknown }[] = []
    // The new one first: in the last round a machine that no longer accepts the old one would be taken for cut off.
    for (const client of ['next', 'old'] as const) {
      const cluster = this.open(client, ['old', 'next'])
      try {
        return { cluster, value: await attempt(cluster) }
      } catch (error) {
        failures.push({ what: `with the ${client === 'old' ? 'old' : 'new'} credentials`, error })
        await cluster.close()
      }
    }
    throw together(failures)
  }
}

/** The steps of the replacement of the machine API's authority. */
export function machineApiSteps(
  io: Io,
  connections: Connections,
  machines: Machines,
  state: AuthorityState,
  report: (line: string) => void,
): RotationSteps<AuthorityRound> & { close(): Promise<void> } {
  const nodes = inOrder(machines)
  let known: Cluster | undefined
  const reached = async () => {
    if (!known) {
      const readAll = async (cluster: Cluster) => {
        for (const node of nodes) await readConfig(cluster, node)
      }
      known = (await connections.reaching(readAll)).cluster
    }
    return known
  }
  const close = async () => {
    const open = known
    known = undefined
    await open?.close()
  }
  return {
    subject: 'machine API',
    nodes,
    report,
    close,
    read: async (node) => readConfig(await reached(), node),
    stageOf: (config) => stageOf(config, 'machine', state),
    advance: (config, stage) => advance(config, 'machine', state, stage),
    apply: async (node, config) => applyConfig(io, await reached(), node, config),
    async prove(round) {
      // The next round connects with other credentials.
      await close()
      await proveReachable(io, connections, nodes, round)
      await proveIssuer(io, connections, nodes, round, state)
      if (!round.accepts.includes('old')) await proveOldRefused(io, connections)
    },
  }
}

/** Every machine is called through every endpoint, as a new client, who trusts servers of the issuing authority only. */
async function proveReachable(io: Io, connections: Connections, nodes: readonly string[], { issuer }: AuthorityRound): Promise<void> {
  for (const endpoint of connections.endpoints)
    for (const node of nodes)
      await within(io, proofTimeout, `reach ${node} through ${endpoint}`, () =>
        checkCallable(() => connections.open('next', [issuer], endpoint), node),
      )
}

interface ApiCertificates {
  readonly server?: { readonly crt?: string }
  readonly client?: { readonly crt?: string }
  readonly acceptedCAs?: readonly { readonly crt: string }[]
}

/** Every machine serves, and calls others, with certificates of the issuing authority. */
async function proveIssuer(
  io: Io,
  connections: Connections,
  nodes: readonly string[],
  { issuer }: AuthorityRound,
  state: AuthorityState,
): Promise<void> {
  const authority = text((issuer === 'old' ? state.old : state.next).crt)
  const cluster = connections.open('next', [issuer])
  try {
    for (const node of nodes)
      await within(io, proofTimeout, `certificates of ${node}`, async () => {
        const spec = await resourceOf<ApiCertificates>(cluster, node, 'secrets', 'ApiCertificates.secrets.talos.dev', 'api')
        for (const pair of [spec.server, spec.client])
          if (pair?.crt && !signedBy(text(pair.crt), authority))
            throw new Error(`still one of the ${issuer === 'next' ? 'old' : 'new'} authority`)
      })
  } finally {
    await cluster.close()
  }
}

/** No endpoint accepts a client of the old authority, while it accepts one of the new. */
async function proveOldRefused(io: Io, connections: Connections): Promise<void> {
  for (const endpoint of connections.endpoints)
    await within(io, proofTimeout, `the old credentials are refused by ${endpoint}`, async () => {
      await checkCallable(() => connections.open('next', ['next'], endpoint), '')
      const cluster = connections.open('old', ['next'], endpoint)
      try {
        await cluster.ask('machine.MachineService/Version', {}, { timeout: 5000 })
      } catch (error) {
        if (isRefusal(error)) return
        throw error
      } finally {
        await cluster.close()
      }
      throw new Error('they are still accepted')
    })
}

/** A server that does not accept a certificate ends the connection. */
function isRefusal(error: unknown): boolean {
  const errors = error instanceof NodeErrors ? error.errors.map((one) => one.error) : [error]
  return errors.every((one) => one instanceof RpcError && (one.status === 'Unavailable' || one.status === 'Unauthenticated'))
}
