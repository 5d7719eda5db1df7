/**
 * Brings a cluster of containers of Docker or Podman to the requested state. The nodes get their configuration from the engine; the
 * host reaches them through published ports of the first control plane alone, so the engine may have them out of its reach.
 */

import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { formatPrefix, masked, nthAddress, tryPrefix } from '../../../../wire/prefix.ts'
import { openJournal } from '../../../node-supervisor/journal.ts'
import { type ClusterRecord, readCluster, writeCluster } from '../../../node-supervisor/layout.ts'
import { UsageError } from '../../failure.ts'
import type { Io } from '../../io.ts'
import { checkSameKind } from '../check-host.ts'
import { mergeTalosconfig } from '../client-files.ts'
import { closing, maintenance } from '../closing.ts'
import {
  type CreateOptions,
  confirmRemoval,
  refuseHalfDestroyed,
  settle,
  timeouts,
  together,
  withPresentCounts,
  withWayOut,
} from '../create.ts'
import { destroyCluster } from '../destroy.ts'
import { sizeOf } from '../host/cidr.ts'
import { freePort } from '../host/ports.ts'
import { checkNetworks, checkPorts } from '../host/preflight.ts'
import { awaitApi, bootstrap } from '../node-api.ts'
import { type Configs, checkConfigs, checkSameConfiguration, nodeConfig, provideConfigs } from '../plan/configs.ts'
import { checkKubernetesVersion } from '../plan/kubernetes-version.ts'
import { type EngineRequest, planChange, planCluster } from '../plan/plan.ts'
import { checkSettled } from '../plan/settled.ts'
import { Progress } from '../progress.ts'
import { holdCluster } from '../run-destroy.ts'
import { imagesFolder } from '../state-paths.ts'
import { Engine } from './client.ts'
import { provideImage } from './images.ts'
import {
  checkEngine,
  checkNetwork,
  containersOf,
  networks,
  nodeTrouble,
  provideDiscovery,
  provideNetwork,
  provideNode,
  subnetsOf,
} from './provision.ts'
import { loopback, machineEndpoints } from './reach.ts'
import { removeNodes } from './remove-nodes.ts'
import { engineSocket } from './socket.ts'

/** Creates a cluster in the engine, or does what is missing of it. */
export async function createInEngine(io: Io, options: CreateOptions, wanted: EngineRequest): Promise<void> {
  const { request } = options
  const directory = join(request.state, request.name)
  const present = readCluster(directory)
  if (present) checkSameKind(present, request)
  refuseHalfDestroyed(directory, request.name)
  const waitTimeout = options.waitTimeout ?? timeouts.usual
  const signal = AbortSignal.any([io.signal, AbortSignal.timeout(waitTimeout)])
  const progress = new Progress(io)
  const engine = await Engine.open(present?.engine?.socket ?? engineSocket(io.env), signal)
  progress.line(`engine: ${engine.name || 'unknown'} at ${engine.socket}`)
  // Podman runs programs to answer this, which takes a busy host long.
  if (!present) await checkEngine(engine)
  const record = present ?? (await newCluster(engine, options, wanted, progress))
  const unlock = holdCluster(directory)
  try {
    const { added, removed } = present ? planChange(record, withPresentCounts(options, record)) : { added: [], removed: [] }
    if (present) {
      checkSettled(record, request, options.requested, added)
      if (existsSync(join(directory, 'controlplane.yaml'))) await checkSameConfiguration(directory, record, options.configs)
    }
    await confirmRemoval(io, options, removed)
    openJournal(directory).write({ kind: 'engine', socket: engine.socket, cluster: record.name })
    const names = new Set(removed.map(({ name }) => name))
    const nodes = record.nodes.map((node) => (names.has(node.name) ? { ...node, leaving: true } : node))
    const cluster = { ...record, nodes: [...nodes, ...added] }
    writeCluster(directory, cluster)
    await checkConfigs(directory, cluster, options.configs).catch(async (error) => {
      // Nothing was created yet: the request can be corrected and repeated.
      if (!present) await destroyCluster(directory)
      throw error
    })
    const configs = await progress.phase('configuration', () => provideConfigs(directory, cluster, options.configs))
    const { isNew } = await start(engine, cluster, request.unconfigured ? undefined : configs, progress)
    const { context, file } = await mergeTalosconfig(io, directory, cluster.name, configs.context(cluster), options.talosconfig)
    progress.line(`client configuration: context "${context}" in ${file}`)
    if (request.unconfigured) return maintenance(io, cluster)
    await bringUp(engine, directory, cluster, { configs, isNew, progress })
    const remaining = await removeNodes(engine, { directory, cluster, removed, credentials: configs.credentials, progress })
    await settle(io, directory, remaining, configs, { ...options, waitTimeout }, progress, signal)
    closing(io, remaining, { progress, kubeconfig: options.kubeconfig })
  } catch (error) {
    throw existsSync(join(directory, 'secrets.yaml')) ? withWayOut(error as Error, request) : error
  } finally {
    if (existsSync(directory)) unlock()
  }
}

/** Checks what a new cluster needs, finds its image and plans it. */
async function newCluster(engine: Engine, options: CreateOptions, wanted: EngineRequest, progress: Progress): Promise<ClusterRecord> {
  const { request, configs, requested } = options
  const leftovers = await containersOf(engine, request.name)
  if (leftovers.length > 0)
    throw new UsageError(
      `the container engine has a cluster "${request.name}" that is not in "${request.state}": choose another name with --name, or take it away with "talosctl cluster destroy --provisioner docker --force --name ${request.name}"`,
    )
  const found = await networks(engine)
  const isThere = checkNetwork(found, request.name, formatPrefix(request.networks.first))
  const others = found.flatMap((one) =>
    subnetsOf(one).flatMap((text) => {
      const cidr = tryPrefix(text)
      return cidr ? [{ link: `network "${one.Name}" of the engine`, cidr: masked(cidr) }] : []
    }),
  )
  const chosen = isThere ? request.networks : checkNetworks(request.networks, request.state, requested.cidr, others)
  await checkPorts(request.hostAddress, request.exposedPorts)
  const image = await progress.phase('image', (report) =>
    provideImage(engine, { named: wanted.image, folder: imagesFolder(undefined), report }),
  )
  const inside = requested.kubernetesVersion ? undefined : image.kubernetes
  const kubernetesVersion = inside?.replace(/^v/, '') ?? request.kubernetesVersion
  if (inside === undefined)
    await checkKubernetesVersion(
      kubernetesVersion,
      configs.mirrors.map(({ registry }) => registry),
    )
  return planCluster(
    { ...request, networks: chosen, image: image.reference, kubernetesVersion },
    {
      kubernetes: await freePort(loopback),
      machineApi: await freePort(loopback),
      engine: {
        socket: engine.socket,
        mounts: wanted.mounts,
        disableIPv6: wanted.disableIPv6,
        // The last one, so that nodes have the addresses that they have elsewhere.
        discoveryAddress: nthAddress(chosen.first, sizeOf(chosen.first) - 2),
      },
    },
  )
}

/** Makes the network and the containers; without configurations the nodes wait in maintenance. Returns whether no control plane was there. */
async function start(
  engine: Engine,
  cluster: ClusterRecord,
  configs: Configs | undefined,
  progress: Progress,
): Promise<{ isNew: boolean }> {
  return progress.phase('nodes', async (detail) => {
    await provideNetwork(engine, cluster)
    await provideDiscovery(engine, cluster)
    let up = 0
    let old = 0
    const staying = cluster.nodes.filter(({ leaving }) => !leaving)
    await together(staying, async (node) => {
      const made = await provideNode(engine, cluster, node, async () => configs && nodeConfig(configs, node))
      if (!made && node.role === 'controlplane') old++
      detail(`${++up} of ${staying.length}`)
    })
    return { isNew: old === 0 }
  })
}

/** Waits for the machine API, and bootstraps a cluster that never was or whose control planes are all new. */
async function bringUp(
  engine: Engine,
  directory: string,
  cluster: ClusterRecord,
  { configs, isNew, progress }: { configs: Configs; isNew: boolean; progress: Progress },
): Promise<void> {
  const [endpoint = ''] = machineEndpoints(cluster)
  const { credentials } = configs
  const trouble = async () => {
    const found = await Promise.all(cluster.nodes.flatMap(({ name, leaving }) => (leaving ? [] : [nodeTrouble(engine, name)])))
    return found.find((one) => one !== undefined)
  }
  await progress.phase('machine API', () => awaitApi(endpoint, credentials, engine.signal, trouble))
  const marker = join(directory, 'bootstrapped')
  if (existsSync(marker) && !isNew) return
  await progress.phase('bootstrap', () => bootstrap(endpoint, credentials, engine.signal))
  writeFileSync(marker, '')
}
