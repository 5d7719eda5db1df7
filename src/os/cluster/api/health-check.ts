import { kubeClient } from '../../../kube/client.ts'
import { accessOf, parseKubeconfig } from '../../../kube/kubeconfig.ts'
import { type Channel, connect } from '../../../rpc/client/channel.ts'
import { toMilliseconds } from '../../../rpc/proto-time.ts'
import { type Context, readers, serverStream } from '../../../rpc/server/method.ts'
import { RpcError } from '../../../rpc/status.ts'
import { MachineConfig } from '../../config/resources/machine-config.ts'
import { ApiCertificate } from '../../secrets/resources/api-certificate.ts'
import { KubernetesSecret } from '../../secrets/resources/kubernetes-secret.ts'
import { awaitHealth, healthLine, Unhealthy } from '../health/run.ts'
import { healthSteps } from '../health/steps.ts'
import type { ClusterView, MachineView } from '../health/view.ts'
import { Member } from '../resources/member.ts'

const defaultTimeout = 20 * 60_000
const callTimeout = 10_000

type Store = Context['store']

/** Waits until the cluster is healthy, as this node sees it, and reports every step. */
export const healthCheck = serverStream(
  'cluster.ClusterService/HealthCheck',
  readers,
  async function* ({ waitTimeout, clusterInfo }, { store, signal }) {
    const members = clusterInfo?.controlPlaneNodes.length
      ? { controlPlanes: clusterInfo.controlPlaneNodes, workers: clusterInfo.workerNodes }
      : known(store)
    if (members.controlPlanes.length === 0) throw new RpcError('FailedPrecondition', 'health check: this node knows no control plane yet')
    const view = viewOf(store, members, clusterInfo?.forceEndpoint ?? '')
    const timeout = waitTimeout ? toMilliseconds(waitTimeout) : defaultTimeout
    try {
      yield* reported((report) => awaitHealth(healthSteps(), view, { timeout, signal, onEvent: (event) => report(healthLine(event)) }))
    } catch (error) {
      throw error instanceof Unhealthy ? new RpcError('DeadlineExceeded', error.message) : error
    } finally {
      view.close()
    }
  },
)

/** Streams the messages that a function reports while it runs; ends when it ends. */
async function* reported(run: (report: (message: string) => void) => Promise<void>): AsyncGenerator<{ message: string }, void> {
  const lines: string[] = []
  let wake = () => {}
  let ended = false
  const running = run((message) => {
    lines.push(message)
    wake()
  }).finally(() => {
    ended = true
    wake()
  })
  running.catch(() => {})
  while (!ended || lines.length > 0) {
    const message = lines.shift()
    if (message !== undefined) yield { message }
    else
      await new Promise<void>((resolve) => {
        wake = resolve
        if (ended) resolve()
      })
  }
  await running
}

function known(store: Store): Pick<ClusterView, 'controlPlanes' | 'workers'> {
  const members = store.list(Member).flatMap(({ spec }) => (spec.addresses[0] ? [{ ...spec, address: spec.addresses[0] }] : []))
  return {
    controlPlanes: members.filter(({ machineType }) => machineType !== 'worker').map(({ address }) => address),
    workers: members.filter(({ machineType }) => machineType === 'worker').map(({ address }) => address),
  }
}

function viewOf(store: Store, members: Pick<ClusterView, 'controlPlanes' | 'workers'>, endpoint: string): ClusterView & { close(): void } {
  const certificates = store.get(ApiCertificate, 'api')?.spec
  const secrets = store.get(KubernetesSecret, 'k8s-certs')?.spec
  if (!certificates?.client || !secrets) throw new RpcError('FailedPrecondition', 'health check: this is no control plane node, ask one')
  const { crt, key } = certificates.client
  const tls = { ca: (certificates.acceptedCAs ?? []).map((ca) => pem(ca.crt)).join('\n'), cert: pem(crt), key: pem(key) }
  const channels = new Map<string, Channel>()
  const channelTo = (address: string) => {
    const channel = channels.get(address) ?? connect({ address, tls }, { metadata: { 'talos-role': 'os:reader' } })
    channels.set(address, channel)
    return channel
  }
  const access = accessOf(parseKubeconfig(secrets.localhostAdminKubeconfig))
  const client = kubeClient(endpoint ? { ...access, server: endpoint } : access)
  return {
    ...members,
    machine: (address) => machineView(channelTo(address), store),
    kubernetes: async () => client,
    close() {
      for (const channel of channels.values()) channel.close()
      client.close()
    },
  }
}

function machineView(channel: Channel, store: Store): MachineView {
  const options = { deadline: callTimeout }
  return {
    services: async () =>
      (await channel.unary('machine.MachineService/ServiceList', {}, options)).messages.flatMap(({ services }) => services),
    etcdMembers: async () =>
      (await channel.unary('machine.MachineService/EtcdMemberList', { queryLocal: true }, options)).messages.flatMap(
        ({ members }) => members,
      ),
    memory: async () => 1024 * ((await channel.unary('machine.MachineService/Memory', {}, options)).messages[0]?.meminfo?.memtotal ?? 0),
    mounts: async () => (await channel.unary('machine.MachineService/Mounts', {}, options)).messages.flatMap(({ stats }) => stats),
    async resources(namespace, type) {
      // Readers may not read the configuration; this node's own is the same for the cluster.
      if (type === MachineConfig.type) return new Map(store.list(MachineConfig).map(({ metadata: { id }, spec }) => [id, spec]))
      const found = new Map<string, unknown>()
      for await (const { resource } of channel.serverStream('cosi.resource.State/List', { namespace, type }, options)) {
        if (resource) found.set(resource.metadata?.id ?? '', Bun.YAML.parse(resource.spec?.yamlSpec ?? ''))
      }
      return found
    },
  }
}

function pem(base64: string): string {
  return Buffer.from(base64, 'base64').toString('latin1')
}
