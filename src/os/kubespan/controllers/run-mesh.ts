import { type Controller, defineController, exclusive, shared, type Task, type Writer, weak } from '../../../cosi/controller.ts'
import type { SpecOf } from '../../../cosi/resource.ts'
import { addressOnly } from '../../../wire/prefix.ts'
import { PrefixSet } from '../../../wire/prefix-set.ts'
import type { Kernel } from '../../kernel.ts'
import { AddressSpec } from '../../network/resources/address.ts'
import { LinkSpec } from '../../network/resources/link.ts'
import { NfTablesChain } from '../../network/resources/nf-tables-chain.ts'
import { RouteSpec } from '../../network/resources/route.ts'
import { RoutingRuleSpec } from '../../network/resources/routing-rule.ts'
import { Diagnostic } from '../../runtime/resources/diagnostic.ts'
import { KernelModuleSpec } from '../../runtime/resources/kernel-module.ts'
import { defaultMtu, keepalive, marks, meshLink, meshPort, meshRule, meshTable } from '../mesh.ts'
import { meshChains } from '../packet-filter.ts'
import { type PeerState, PeerTracker } from '../peer-tracker.ts'
import { KubeSpanConfig } from '../resources/kube-span-config.ts'
import { KubeSpanIdentity } from '../resources/kube-span-identity.ts'
import { KubeSpanPeerSpec, KubeSpanPeerStatus } from '../resources/kube-span-peer.ts'
import { wireguardPeers } from '../wireguard-peers.ts'
import type { WireguardPresence } from '../wireguard-presence.ts'

/** Polling interval while all peers are healthy, in milliseconds. */
const lookInterval = 15_000
/** Polling interval until the link exists, or while a handshake is expected. */
const soon = 500

const layer = 'operator' as const

const lackId = 'kubespan-wireguard'
const lack: SpecOf<typeof Diagnostic> = {
  message: 'KubeSpan is enabled, but this kernel has no WireGuard: traffic between nodes is not encrypted by KubeSpan',
  details: ['load the module "wireguard" into the kernel, or set "enabled: false" in KubeSpanConfig'],
}

/** A task that reports the missing mesh to `explain` for as long as it is missing. */
const complain: Task = (signal, _, report) => {
  report(new Error('this kernel has no WireGuard'))
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
}

type Peer = { key: string; spec: SpecOf<typeof KubeSpanPeerSpec>; state: PeerState }

/** Maintains the mesh: link, address, routes, rule and packet filter, and the state of each peer. */
export const runMesh = (kernel: Pick<Kernel, 'mode' | 'net' | 'wireguard'>, presence: WireguardPresence): Controller => {
  const tracker = new PeerTracker()
  return defineController({
    name: 'kubespan.ManagerController',
    inputs: {
      config: weak(KubeSpanConfig, { id: 'kubespan' }),
      identity: weak(KubeSpanIdentity, { id: 'local' }),
      peers: weak(KubeSpanPeerSpec),
    },
    outputs: {
      link: shared(LinkSpec, 'network-config'),
      address: shared(AddressSpec, 'network-config'),
      routes: shared(RouteSpec, 'network-config'),
      rules: shared(RoutingRuleSpec, 'network-config'),
      chains: shared(NfTablesChain),
      modules: shared(KernelModuleSpec),
      statuses: exclusive(KubeSpanPeerStatus),
      diagnostics: shared(Diagnostic),
    },
    reconcile({ config, identity, peers, modules, statuses, diagnostics, background, clock, wakeIn, log, ...network }) {
      const mesh = config.get('kubespan')?.spec
      if (!mesh?.enabled) return
      if (kernel.mode === 'metal') modules.put('wireguard', { string: 'wireguard', parameters: [] })
      const time = clock.elapsed()
      const kernelHas = presence.look(time)
      if (kernelHas !== 'there') {
        wakeIn(presence.again(time))
        if (kernelHas === 'awaited') return
        if (!diagnostics.get(lackId)) log.error('KubeSpan is enabled, but the kernel has no WireGuard')
        diagnostics.put(lackId, lack)
        return background('find WireGuard', complain)
      }
      const own = identity.get('local')?.spec
      if (!own) return
      const present = wireguardPeers(kernel, meshLink)
      const byKey = new Map(present?.map((peer) => [peer.publicKey, peer]))
      const found: Peer[] = peers.list().map(({ metadata, spec }) => ({
        key: metadata.id,
        spec,
        state: tracker.update(metadata.id, spec.endpoints, byKey.get(metadata.id), time, clock.now().getTime()),
      }))
      tracker.retain(new Set(found.map(({ key }) => key)))
      putNetwork(network, mesh, own, found)
      for (const { key, spec, state } of found) {
        const before = statuses.get(key)?.spec
        if (before && before.state !== state.state)
          log.info('peer state changed', { peer: spec.label, state: state.state, endpoint: state.endpoint })
        statuses.put(key, statusOf(spec.label, state))
      }
      const wait = tracker.next(time)
      const expecting = !present || found.some(({ state }) => state.state === 'unknown')
      wakeIn(Math.min(wait ?? lookInterval, expecting ? soon : lookInterval))
    },
  })
}

type Put<T> = Pick<Writer<SpecOf<T>>, 'put'>

interface MeshOutputs {
  link: Put<typeof LinkSpec>
  address: Put<typeof AddressSpec>
  routes: Put<typeof RouteSpec>
  rules: Put<typeof RoutingRuleSpec>
  chains: Put<typeof NfTablesChain>
}

/** Requests the network of the mesh: its link with the peers, this node's address, and what is routed to them. */
function putNetwork(
  { link, address, routes, rules, chains }: MeshOutputs,
  mesh: SpecOf<typeof KubeSpanConfig>,
  own: SpecOf<typeof KubeSpanIdentity>,
  peers: readonly Peer[],
): void {
  const mtu = mesh.mtu ?? defaultMtu
  link.put(`${layer}/${meshLink}`, linkSpec(peers, own.privateKey, mesh.sharedSecret, mtu))
  const subnetBits = own.subnet.slice(own.subnet.indexOf('/'))
  const meshAddress = `${addressOnly(own.address)}${subnetBits}`
  address.put(`${layer}/${meshLink}/${meshAddress}`, {
    address: meshAddress,
    linkName: meshLink,
    family: 'inet6',
    scope: 'global',
    flags: 'permanent',
    layer,
  })
  for (const family of ['inet4', 'inet6']) {
    routes.put(`${layer}/${meshTable}/${family}`, routeSpec(family, mtu))
    rules.put(`${layer}/${family}/${meshRule}`, ruleSpec(family))
  }
  // Without forced routing, packets to a peer that is down bypass the mesh.
  const meshed = peers.filter(({ state }) => mesh.forceRouting || state.state === 'up')
  const networks = PrefixSet.of(meshed.flatMap(({ spec }) => spec.allowedIPs)).networks()
  for (const [name, chain] of meshChains(networks, mtu)) chains.put(name, chain)
}

function linkSpec(peers: readonly Peer[], privateKey: string, presharedKey: string, mtu: number): SpecOf<typeof LinkSpec> {
  return {
    name: meshLink,
    logical: true,
    up: true,
    mtu,
    kind: 'wireguard',
    type: 'nohdr',
    layer,
    wireguard: {
      privateKey,
      listenPort: meshPort,
      firewallMark: marks.wireguard,
      peers: peers.map(({ key, spec: { allowedIPs }, state: { endpoint } }) => ({
        publicKey: key,
        presharedKey,
        endpoint,
        persistentKeepaliveInterval: `${keepalive}s`,
        allowedIPs,
      })),
    },
  }
}

const routeSpec = (family: string, mtu: number): SpecOf<typeof RouteSpec> => ({
  family,
  dst: '',
  src: '',
  gateway: '',
  outLinkName: meshLink,
  table: String(meshTable),
  priority: 1,
  scope: 'global',
  type: 'unicast',
  flags: '',
  protocol: 'static',
  layer,
  mtu,
})

const ruleSpec = (family: string): SpecOf<typeof RoutingRuleSpec> => ({
  family,
  src: '',
  dst: '',
  table: String(meshTable),
  priority: meshRule,
  action: 'unicast',
  fwMark: marks.force,
  fwMask: marks.mask,
  layer,
})

const statusOf = (label: string, state: PeerState): SpecOf<typeof KubeSpanPeerStatus> => ({
  endpoint: state.endpoint,
  label,
  state: state.state,
  receiveBytes: state.receiveBytes,
  transmitBytes: state.transmitBytes,
  lastHandshakeTime: moment(state.lastHandshake),
  lastUsedEndpoint: state.lastUsedEndpoint,
  lastEndpointChange: moment(state.lastEndpointChange),
})

/** Go's zero time represents never. */
const moment = (milliseconds: number) =>
  milliseconds > 0 ? new Date(milliseconds).toISOString().replace('.000Z', 'Z') : '0001-01-01T00:00:00Z'
