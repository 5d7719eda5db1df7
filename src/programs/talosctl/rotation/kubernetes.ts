/** The authority of Kubernetes: how a changed node is waited for, and how the result of a round is proven. */

import { core, type KubeClient, kubeClient } from '../../../kube/client.ts'
import { KubeError } from '../../../kube/errors.ts'
import type { KubeObject } from '../../../kube/object.ts'
import { messageOf } from '../../../wire/error-message.ts'
import { decodePem } from '../../../wire/pem.ts'
import type { Cluster } from '../cluster.ts'
import type { Io } from '../io.ts'
import { applyConfig, checkHealthy, nameOf, readConfig, resourceOf } from '../machine/machine.ts'
import { within } from '../machine/within.ts'
import { advance, fingerprintOf, stageOf } from './authority.ts'
import { fileOf, inOrder, type Machines, restartKubelet } from './machines.ts'
import type { AuthorityRound, Generation } from './rounds.ts'
import type { RotationSteps } from './run.ts'
import type { AuthorityState } from './state.ts'
import { checkRolledOut, projectedFiles, type RestartScope, restartWorkloads } from './workloads.ts'

/** How long the components of a node may take to restart, and the cluster to use what they were given. In milliseconds. */
const [settleTimeout, proofTimeout] = [240_000, 240_000]
const callTimeout = 10_000

const text = (base64: string) => Buffer.from(base64, 'base64').toString('utf8')

/** Kubernetes as clients of its authorities see it, at one address. */
export class KubernetesAccess {
  readonly #server: string
  readonly #state: AuthorityState

  constructor(server: string, state: AuthorityState) {
    this.#server = server
    this.#state = state
  }

  /** Runs `act` with a new client of one authority, which trusts servers of these authorities only. */
  async with<T>(client: Generation, trust: readonly Generation[], act: (kubernetes: KubeClient) => Promise<T>): Promise<T> {
    const { old, next, oldClient, nextClient } = this.#state
    const pair = client === 'old' ? oldClient : nextClient
    const ca = trust.map((one) => text((one === 'old' ? old : next).crt)).join('\n')
    const kubernetes = kubeClient({ server: this.#server, ca, cert: text(pair.crt), key: text(pair.key) })
    try {
      return await act(kubernetes)
    } finally {
      kubernetes.close()
    }
  }
}

/** The steps of the replacement of the authority of Kubernetes. */
export function kubernetesSteps(
  io: Io,
  cluster: Cluster,
  access: KubernetesAccess,
  machines: Machines,
  { state, restarted, report }: { state: AuthorityState; restarted: RestartScope; report: (line: string) => void },
): RotationSteps<AuthorityRound> {
  const nodes = inOrder(machines)
  return {
    subject: 'Kubernetes',
    nodes,
    report,
    read: (node) => readConfig(cluster, node),
    stageOf: (config) => stageOf(config, 'cluster', state),
    advance: (config, stage) => advance(config, 'cluster', state, stage),
    apply: (node, config) => applyConfig(io, cluster, node, config),
    async settle(node, round) {
      // The client that every API server accepts while the nodes are at this stage and the one before.
      const client = round.accepts.includes('old') ? 'old' : 'next'
      await within(io, settleTimeout, `${node} after its change`, async () => {
        await checkAuthorities(cluster, node, '/etc/kubernetes/pki/ca.crt', round, state)
        if (machines.controlPlanes.includes(node))
          await checkAuthorities(cluster, node, '/system/secrets/kubernetes/kube-apiserver/ca.crt', round, state)
        await checkHealthy(cluster, node, 'kubelet')
        await access.with(client, ['old', 'next'], async (kubernetes) => {
          const name = await nameOf(cluster, node)
          if (machines.controlPlanes.includes(node)) await checkComponents(cluster, kubernetes, node, name)
          checkReady(await kubernetes.get(core.node, name, undefined, { timeout: callTimeout }))
        })
      })
    },
    async prove(round) {
      const names = await Promise.all(nodes.map(async (node): Promise<[string, string]> => [await nameOf(cluster, node), node]))
      const proven: Proven = (what, check) => within(io, proofTimeout, what, () => access.with('next', [round.issuer], check))
      await proveNodes(proven, names, round, state)
      // What calls the API server goes on trusting it when it gets a certificate of the new authority.
      if (round.issuer === 'old') await restartClients(cluster, proven, new Map(names), { round, state, restarted, report })
      if (!round.accepts.includes('old')) await within(io, proofTimeout, 'the old credentials are refused', () => checkOldRefused(access))
    },
  }
}

/** Fingerprints of the authorities that a round leaves accepted. */
const acceptedIn = (round: AuthorityRound, { old, next }: AuthorityState) =>
  round.accepts.map((one) => fingerprintOf((one === 'old' ? old : next).crt))

/** Throws unless PEM holds the authorities that a round leaves accepted, and none of those it drops. */
function checkBundle(pem: string, round: AuthorityRound, state: AuthorityState): void {
  const held = new Set(decodePem(pem).map(({ der }) => fingerprintOf(Buffer.from(certificatePem(der)).toString('base64'))))
  if (!acceptedIn(round, state).every((one) => held.has(one))) throw new Error('an accepted authority is not in it yet')
  if (!round.accepts.includes('old') && held.has(fingerprintOf(state.old.crt))) throw new Error('the old authority is still in it')
}

const certificatePem = (der: Uint8Array) =>
  `-----BEGIN CERTIFICATE-----\n${Buffer.from(der).toString('base64')}\n-----END CERTIFICATE-----\n`

async function checkAuthorities(cluster: Cluster, node: string, path: string, round: AuthorityRound, state: AuthorityState): Promise<void> {
  const pem = await fileOf(cluster, node, path)
  try {
    checkBundle(pem, round, state)
  } catch (error) {
    throw new Error(`${path}: ${messageOf(error)}`)
  }
}

function conditionOf({ status }: KubeObject, type: string): string | undefined {
  const { conditions = [] } = (status ?? {}) as { conditions?: { type: string; status: string }[] }
  return conditions.find((one) => one.type === type)?.status
}

/** Throws unless a node or pod is ready. */
function checkReady(object: KubeObject): void {
  if (conditionOf(object, 'Ready') !== 'True') throw new Error(`${object.kind} ${object.metadata.name} is not ready`)
}

/** Throws unless every component of a control plane runs with the secrets that are on the machine's disk, and is ready. */
export async function checkComponents(cluster: Cluster, kubernetes: KubeClient, node: string, name: string): Promise<void> {
  const type = 'SecretStatuses.kubernetes.talos.dev'
  const { version } = await resourceOf<{ version: string }>(cluster, node, 'controlplane', type, 'static-pods')
  const query = { namespace: 'kube-system', labelSelector: 'tier=control-plane', fieldSelector: `spec.nodeName=${name}` }
  const { items } = await kubernetes.list(core.pod, query, { timeout: callTimeout })
  if (!items.some(({ metadata }) => metadata.labels?.component === 'kube-apiserver')) throw new Error('the API server is not there yet')
  for (const pod of items) {
    if (pod.metadata.annotations?.['talos.dev/secrets-version'] !== version)
      throw new Error(`pod ${pod.metadata.name} has not started with the new secrets yet`)
    checkReady(pod)
  }
}

const lease = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', plural: 'leases', namespaced: true }

type Proven = (what: string, check: (kubernetes: KubeClient) => Promise<void>) => Promise<void>

/** Every node is ready and reached, and reports; and every namespace has the accepted authorities. */
async function proveNodes(proven: Proven, nodes: readonly [string, string][], round: AuthorityRound, state: AuthorityState): Promise<void> {
  const names = nodes.map(([name]) => name)
  for (const name of names) {
    await proven(`node "${name}" is ready`, async (kubernetes) => checkReady(await kubernetes.get(core.node, name)))
    // The API server calls the kubelet with a certificate of the issuing authority.
    await proven(`the API server reaches the kubelet of "${name}"`, async (kubernetes) => {
      await kubernetes.request('GET', `/api/v1/nodes/${name}/proxy/healthz`, { timeout: callTimeout })
    })
  }
  await proveRenewed(proven, names)
  await proven('pods are given the accepted authorities (kube-root-ca.crt)', async (kubernetes) => {
    const { items } = await kubernetes.list(core.configMap, { fieldSelector: 'metadata.name=kube-root-ca.crt' })
    if (items.length === 0) throw new Error('there is no such ConfigMap')
    for (const { metadata, data } of items) {
      try {
        checkBundle((data as Record<string, string> | undefined)?.['ca.crt'] ?? '', round, state)
      } catch (error) {
        throw new Error(`namespace "${metadata.namespace}": ${messageOf(error)}`)
      }
    }
  })
}

interface Restart {
  readonly round: AuthorityRound
  readonly state: AuthorityState
  readonly restarted: RestartScope
  report(line: string): void
}

/**
 * Brings the accepted authorities to every running pod: as a file to all, and by a restart to the workloads in scope. The files come
 * first: a kubelet gives a new pod what it knows, which may be the authorities of before, and most programs read them once.
 */
async function restartClients(
  cluster: Cluster,
  proven: Proven,
  addresses: ReadonlyMap<string, string>,
  { round, state, restarted, report }: Restart,
): Promise<void> {
  await proveFiles(cluster, proven, addresses, round, state)
  await proven('workloads restart', async (kubernetes) => {
    const names = await restartWorkloads(kubernetes, restarted, state.next.crt)
    if (names.length > 0) report(`Kubernetes: restarting ${names.join(', ')}, which read the authorities once`)
  })
  await proven('workloads are restarted', (kubernetes) => checkRolledOut(kubernetes, restarted))
  if (restarted !== 'all')
    report(
      'Kubernetes: WARNING: other pods that read ca.crt only at their start have to be restarted, --restart-workloads=all restarts all',
    )
  await proveFiles(cluster, proven, addresses, round, state)
}

/** Every running pod has the accepted authorities in the file that it is given. */
async function proveFiles(
  cluster: Cluster,
  proven: Proven,
  addresses: ReadonlyMap<string, string>,
  round: AuthorityRound,
  state: AuthorityState,
): Promise<void> {
  const refreshed = new Set<string>()
  await proven('every pod has the accepted authorities in its ca.crt', async (kubernetes) => {
    for (const { pod, node, path } of await projectedFiles(kubernetes, 'authorities')) {
      const address = addresses.get(node)
      if (!address) continue
      try {
        await checkAuthorities(cluster, address, path, round, state)
      } catch (error) {
        // A kubelet brings the files of pods up to date when it starts, and otherwise within minutes.
        if (!refreshed.has(address)) {
          refreshed.add(address)
          await restartKubelet(cluster, address)
        }
        throw new Error(`pod ${pod}: ${messageOf(error)}`)
      }
    }
  })
}

/** Every kubelet renews its lease after all were changed: the API server accepts its certificate. */
async function proveRenewed(proven: Proven, names: readonly string[]): Promise<void> {
  const renewals = async (kubernetes: KubeClient) => {
    const { items } = await kubernetes.list(lease, { namespace: 'kube-node-lease' }, { timeout: callTimeout })
    return new Map(items.map(({ metadata, spec }) => [metadata.name ?? '', (spec as { renewTime?: string } | undefined)?.renewTime]))
  }
  let before: Map<string, string | undefined> | undefined
  await proven('every kubelet reports to the API server', async (kubernetes) => {
    const now = await renewals(kubernetes)
    before ??= now
    const silent = names.filter((name) => now.get(name) === undefined || now.get(name) === before?.get(name))
    if (silent.length > 0) throw new Error(`nothing from ${silent.join(', ')} yet`)
  })
}

async function checkOldRefused(access: KubernetesAccess): Promise<void> {
  await access.with('next', ['next'], (kubernetes) => kubernetes.request('GET', '/version', { timeout: callTimeout }))
  try {
    await access.with('old', ['next'], (kubernetes) => kubernetes.list(core.node, {}, { timeout: callTimeout }))
  } catch (error) {
    if (error instanceof KubeError && error.status === 401) return
    throw error
  }
  throw new Error('they are still accepted')
}
