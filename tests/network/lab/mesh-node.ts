/** A node of a mesh, alone in its network namespace: the real controllers of addresses, discovery, packet filter and KubeSpan. */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { createLogger, type LogEntry } from '../../../src/cosi/log.ts'
import { Runtime } from '../../../src/cosi/runtime.ts'
import { Store } from '../../../src/cosi/store.ts'
import { filterTable, watchFilterTable } from '../../../src/linux/net/nftables.ts'
import { VolumeStatus } from '../../../src/os/block/resources/volume-status.ts'
import { configLocalAffiliate, mergeAffiliates } from '../../../src/os/cluster/controllers/affiliate.ts'
import { configDiscovery } from '../../../src/os/cluster/controllers/config.ts'
import { discoverByService } from '../../../src/os/cluster/controllers/discovery-service.ts'
import { configIdentity } from '../../../src/os/cluster/controllers/identity.ts'
import { MachineConfig } from '../../../src/os/config/resources/machine-config.ts'
import { MachineType } from '../../../src/os/config/resources/machine-type.ts'
import { NodeStatus } from '../../../src/os/k8s/resources/node.ts'
import { Nodename } from '../../../src/os/k8s/resources/nodename.ts'
import type { Kernel } from '../../../src/os/kernel.ts'
import { kubespan } from '../../../src/os/kubespan/kubespan.ts'
import { configAddressOrder, observeNodeAddresses } from '../../../src/os/network/controllers/address/node-address.ts'
import { applyFirewall } from '../../../src/os/network/controllers/firewall.ts'
import { observeHardwareAddress } from '../../../src/os/network/controllers/link/hardware-address.ts'
import { tableName } from '../../../src/os/network/firewall/nft-script.ts'
import { HostnameStatus } from '../../../src/os/network/resources/hostname.ts'
import { NodeAddressFilter } from '../../../src/os/network/resources/node-address.ts'
import { DevicesStatus } from '../../../src/os/runtime/resources/devices-status.ts'
import { connect } from '../../../src/rpc/client/channel.ts'
import { addressing, ruling } from './controllers.ts'

export interface MeshNode {
  readonly name: string
  /** Of its link eth0, with the length of the prefix. */
  readonly address: string
  readonly gateway: string
  /** The network of its pods. */
  readonly pods: string
  /** URL of the discovery service. */
  readonly discovery: string
  /** The folder that stands for its STATE. */
  readonly state: string
}

/** Runs a script of nft(8) in the namespace of the caller. */
export async function nft(script: string): Promise<void> {
  const child = Bun.spawn(['/usr/sbin/nft', '-f', '-'], { stdin: Buffer.from(script), stdout: 'pipe', stderr: 'pipe' })
  const [output, code] = await Promise.all([new Response(child.stderr).text(), child.exited])
  if (code !== 0) throw new Error(`nft: ${output.trim().split('\n')[0]}`)
}

/** The kernel with the node's own folder for what STATE holds. */
function withState(kernel: Kernel, folder: string): Kernel {
  const state = (path: string) => join(folder, path)
  mkdirSync(state('/system/state'), { recursive: true })
  const { files } = kernel
  const own = {
    ...files,
    readTextIfThere: (path: string) => files.readTextIfThere(path.startsWith('/system/') ? state(path) : path),
    writeAtomic: (path: string, ...rest: [string, object?]) => files.writeAtomic(state(path), ...rest),
  }
  return { ...kernel, files: own as Kernel['files'] }
}

/** Starts the node; its store shows how it does. */
export function startMeshNode(host: Kernel, node: MeshNode, log: (entry: LogEntry) => void): Store {
  const kernel = withState(host, node.state)
  const store = new Store()
  const os = new Runtime(store, { log: createLogger(log) })
  os.register(
    ...addressing(kernel),
    ...ruling(kernel),
    observeHardwareAddress,
    configAddressOrder,
    observeNodeAddresses,
    applyFirewall({ run: nft, look: () => filterTable(tableName), watch: (signal) => watchFilterTable(tableName, { signal }) }),
    configIdentity(kernel),
    configDiscovery,
    configLocalAffiliate({ version: { name: 'Ichor', tag: 'v1', sha: '', built: '', arch: 'amd64' } }),
    discoverByService(({ serviceEndpoint }) => connect({ address: serviceEndpoint })),
    mergeAffiliates,
    ...(kubespan.parts?.({ kernel } as never).controllers ?? []),
  )
  store.put(DevicesStatus, 'devices', { ready: true })
  store.put(VolumeStatus, 'STATE', { phase: 'missing', type: 'partition' }) // the folder of this node stands for it
  store.put(HostnameStatus, 'hostname', { hostname: node.name, domainname: '' })
  store.put(Nodename, 'nodename', { nodename: node.name, hostnameVersion: '1', skipNodeRegistration: false })
  store.put(NodeAddressFilter, 'no-k8s', { includeSubnets: [], excludeSubnets: ['10.244.0.0/16'] })
  store.put(MachineType, 'machine-type', 'worker')
  const status = { nodename: node.name, nodeReady: true, unschedulable: false, labels: {}, annotations: {} }
  store.put(NodeStatus, node.name, { ...status, podCIDRs: [node.pods] })
  store.put(MachineConfig, 'v1alpha1', configurationOf(node))
  os.start()
  return store
}

const configurationOf = ({ address, gateway, discovery }: MeshNode): string => `version: v1alpha1
machine:
  type: worker
  network: {interfaces: [{interface: eth0, addresses: [${address}], routes: [{network: 0.0.0.0/0, gateway: ${gateway}}]}]}
cluster:
  id: mesh
  secret: ${Buffer.alloc(32, 5).toString('base64')}
  discovery: {enabled: true, registries: {service: {endpoint: "${discovery}"}}}
---
apiVersion: v1alpha1
kind: KubeSpanConfig
enabled: true
advertiseKubernetesNetworks: true
harvestExtraEndpoints: true
`
