/**
 * Every rule of the contract with a configuration that breaks it: the message has the position and the severity of the
 * contract has it. Rules that need facts of a running machine are listed with where they are decided.
 */
import { expect, test } from 'bun:test'
import { ConfigError } from '../../../src/document/config-error.ts'
import type { Mode } from '../../../src/document/kind.ts'
import { ConfigContainer } from '../../../src/os/config/container.ts'
import { whole } from './machine.ts'

const rows = (await Bun.file(`${import.meta.dir}/contract/config-validation.tsv`).text())
  .split('\n')
  .slice(1)
  .filter(Boolean)
  .map((line) => line.split('\t') as [kind: string, path: string, rule: string, severity: string])

/** A row's name: kind and path, counted when there are several. */
const names = new Map<string, (typeof rows)[number]>()
for (const row of rows) {
  const base = `${row[0]} ${row[1]}`
  let name = base
  for (let count = 2; names.has(name); count++) name = `${base} (${count})`
  names.set(name, row)
}

interface Case {
  read(): ConfigContainer
  readonly mode: Mode
  /** How the place begins, or the message where there is no place. */
  readonly at: string
}

/** A generated configuration with a patch: flow YAML, or JSON operations. */
const patched = (type: keyof typeof whole, patch: string, at: string, mode: Mode = 'metal'): Case => ({
  read: () => whole[type].patch(patch),
  mode,
  at,
})
const worker = (patch: string, at: string, mode?: Mode) => patched('worker', patch, at, mode)
const plane = (patch: string, at: string, mode?: Mode) => patched('controlplane', patch, at, mode)
const without = (path: string) => JSON.stringify([{ op: 'remove', path }])
const set = (path: string, value: unknown) => JSON.stringify([{ op: 'add', path, value }])
/** A document alone. */
const document = (kind: string, body: string, at: string): Case =>
  text(
    `apiVersion: v1alpha1
kind: ${kind}
${body}
`,
    at,
  )
const text = (text: string, at: string): Case => ({ read: () => ConfigContainer.parse(text), mode: 'metal', at })
/** A link of `machine.network.interfaces`. */
const link = (fields: string, at: string, type: 'worker' | 'controlplane' = 'worker') =>
  patched(type, `machine: {network: {interfaces: [{interface: eth0, ${fields}}]}}`, `machine.network.interfaces[0]${at}`)
const bond = (fields: string, at: string) => link(`bond: {interfaces: [a], mode: balance-rr, ${fields}}`, `.bond${at}`)
const volume = (fields: string) => `name: v\nprovisioning: {diskSelector: {match: "true"}, minSize: 1GB}\n${fields}`
const both = (kind: string, body: string, legacy: string): Case =>
  worker(`${legacy}\n---\napiVersion: v1alpha1\nkind: ${kind}\n${body}\n`, '')

const token16 = '0123456789abcdef'
const key32 = Buffer.alloc(32, 1).toString('base64')
const wireguard = `name: w\nprivateKey: ${key32}\n`

const cases: Record<string, Case> = {
  '(loader) document': text('machine: {}\nquux: 1\n', 'quux'),
  '(loader) document (2)': text('debug: {}\n', 'debug'),
  '(loader) document (3)': text('a: 1\n', 'a document needs'),
  '(loader) document (4)': document('Nope', '', 'unknown kind'),
  '(loader) stream': text(
    'apiVersion: v1alpha1\nkind: LinkConfig\nname: a\n---\napiVersion: v1alpha1\nkind: LinkConfig\nname: a\n',
    'a second document',
  ),
  '(loader) stream (2)': text('machine: {}\n---\nmachine: {}\n', 'a second document'),
  '(loader) stream (3)': text(
    'apiVersion: v1alpha1\nkind: LinkConfig\nname: a\n---\napiVersion: v1alpha1\nkind: BondConfig\nname: a\n',
    'LinkConfig "a" on line 1',
  ),
  '(loader) patch': text('machine:\n  kubelet:\n    $patch: delete\n', 'machine.kubelet["$patch"]'),
  'v1alpha1 machine': worker(without('/machine'), 'machine'),
  'v1alpha1 cluster': worker(without('/cluster'), 'cluster'),
  'v1alpha1 persist': worker('persist: false', 'persist'),
  'v1alpha1 machine.type': worker('machine: {type: boss}', 'machine.type'),
  'v1alpha1 machine.install': worker(without('/machine/install'), 'machine.install'),
  'v1alpha1 machine.install.disk': worker(without('/machine/install/disk'), 'machine.install.disk'),
  'v1alpha1 machine.install.extraKernelArgs': worker(
    'machine: {install: {extraKernelArgs: [a], grubUseUKICmdline: true}}',
    'machine.install.extraKernelArgs',
  ),
  'v1alpha1 machine.install.extensions': worker('machine: {install: {extensions: [{image: a}, {image: a}]}}', 'machine.install.extensions'),
  'v1alpha1 machine.install.extensions (2)': worker('machine: {install: {extensions: [{image: a}]}}', 'machine.install.extensions'),
  'v1alpha1 machine.features.hostDNS': worker(without('/machine/features/hostDNS'), 'machine.features.hostDNS', 'container'),
  'v1alpha1 machine.features.hostDNS.forwardKubeDNSToHost': worker(
    set('/machine/features/hostDNS', { enabled: false, forwardKubeDNSToHost: true }),
    'machine.features.hostDNS.forwardKubeDNSToHost',
  ),
  'v1alpha1 machine.ca': worker(without('/machine/ca'), 'machine.ca'),
  'v1alpha1 machine.ca (2)': plane(without('/machine/ca/key'), 'machine.ca.key'),
  'v1alpha1 machine.ca.key': worker('machine: {ca: {key: YQ==}}', 'machine.ca.key'),
  'v1alpha1 machine.ca.crt': worker(without('/machine/ca/crt'), 'machine.ca'),
  'v1alpha1 cluster.ca.key': worker('cluster: {ca: {key: YQ==}}', 'cluster.ca.key'),
  'v1alpha1 machine.network.interfaces[].vip': link('vip: {ip: 1.1.1.1}', '.vip'),
  'v1alpha1 machine.network.interfaces[]': link('bond: {interfaces: [a], mode: balance-rr}, bridge: {interfaces: [b]}', ''),
  'v1alpha1 machine.network.interfaces[] (2)': worker(
    'machine: {network: {interfaces: [{deviceSelector: {}}]}}',
    'machine.network.interfaces[0]',
  ),
  'v1alpha1 machine.network.interfaces[].bond': bond('deviceSelectors: [{driver: x}]', ''),
  'v1alpha1 machine.network.interfaces[] (3)': worker(
    'machine: {network: {interfaces: [{interface: b0, bond: {interfaces: [a], mode: balance-rr}}, {interface: b1, bond: {interfaces: [a], mode: balance-rr}}]}}',
    'machine.network.interfaces[1].bond',
  ),
  'v1alpha1 machine.network.interfaces[] (4)': worker(
    'machine: {network: {interfaces: [{interface: b0, bond: {interfaces: [a], mode: balance-rr}}, {interface: a, dhcp: true}]}}',
    'machine.network.interfaces[1]',
  ),
  'v1alpha1 machine.network.interfaces[] (5)': link('cidr: 1.1.1.1/8, addresses: [1.1.1.2/8]', ''),
  'v1alpha1 machine.network.interfaces[].addresses[]': link('addresses: [x]', '.addresses[0]'),
  'v1alpha1 machine.network.interfaces[].vip.ip': link('vip: {ip: x}', '.vip.ip', 'controlplane'),
  'v1alpha1 machine.network.interfaces[].routes[]': link('routes: [{metric: 1}]', '.routes[0]'),
  'v1alpha1 machine.network.interfaces[].routes[].network': link('routes: [{network: x}]', '.routes[0].network'),
  'v1alpha1 machine.network.interfaces[].routes[].gateway': link('routes: [{gateway: x}]', '.routes[0].gateway'),
  'v1alpha1 machine.network.interfaces[].bond.mode': link('bond: {interfaces: [a], mode: x}', '.bond.mode'),
  'v1alpha1 machine.network.interfaces[].bond.xmitHashPolicy': bond('xmitHashPolicy: x', '.xmitHashPolicy'),
  'v1alpha1 machine.network.interfaces[].bond.lacpRate': bond('lacpRate: x', '.lacpRate'),
  'v1alpha1 machine.network.interfaces[].bond.arpValidate': bond('arpValidate: x', '.arpValidate'),
  'v1alpha1 machine.network.interfaces[].bond.arpAllTargets': bond('arpAllTargets: x', '.arpAllTargets'),
  'v1alpha1 machine.network.interfaces[].bond.primaryReselect': bond('primaryReselect: x', '.primaryReselect'),
  'v1alpha1 machine.network.interfaces[].bond.failOverMac': bond('failOverMac: x', '.failOverMac'),
  'v1alpha1 machine.network.interfaces[].bond.adSelect': bond('adSelect: x', '.adSelect'),
  'v1alpha1 machine.network.interfaces[].bond.updelay': bond('miimon: 100, updelay: 150', '.updelay'),
  'v1alpha1 machine.network.interfaces[].bond.packetsPerSlave': link(
    'bond: {interfaces: [a], mode: active-backup, packetsPerSlave: 2}',
    '.bond.packetsPerSlave',
  ),
  'v1alpha1 machine.network.interfaces[].bond.tlbDynamicLb': bond('tlbDynamicLb: 1', '.tlbDynamicLb'),
  'v1alpha1 machine.network.interfaces[].bond.adActorSysPrio': bond('adActorSysPrio: 1', '.adActorSysPrio'),
  'v1alpha1 machine.network.interfaces[].wireguard.privateKey': link('wireguard: {privateKey: x}', '.wireguard.privateKey'),
  'v1alpha1 machine.network.interfaces[].wireguard.peers[].endpoint': link(
    `wireguard: {privateKey: ${key32}, peers: [{publicKey: ${key32}, endpoint: 1.1.1.1}]}`,
    '.wireguard.peers[0].endpoint',
  ),
  'v1alpha1 machine.network.interfaces[].wireguard.peers[].allowedIPs[]': link(
    `wireguard: {privateKey: ${key32}, peers: [{publicKey: ${key32}, allowedIPs: [x]}]}`,
    '.wireguard.peers[0].allowedIPs[0]',
  ),
  'v1alpha1 machine.network.kubespan.mtu': worker('machine: {network: {kubespan: {mtu: 1000}}}', 'machine.network.kubespan.mtu'),
  'v1alpha1 machine.network.kubespan': worker(
    'machine: {network: {kubespan: {enabled: true}}}\ncluster: {discovery: {enabled: false}}',
    'machine.network.kubespan',
  ),
  'v1alpha1 machine.network.kubespan.filters.endpoints[]': worker(
    'machine: {network: {kubespan: {filters: {endpoints: [x]}}}}',
    'machine.network.kubespan.filters.endpoints[0]',
  ),
  'v1alpha1 machine.network.kubespan.filters.excludeAdvertisedNetworks[]': worker(
    'machine: {network: {kubespan: {filters: {excludeAdvertisedNetworks: [x]}}}}',
    'machine.network.kubespan.filters.excludeAdvertisedNetworks[0]',
  ),
  'v1alpha1 machine.disks[]': text('machine:\n  disks:\n    -\n', 'machine.disks[0]'),
  'v1alpha1 machine.disks[].partitions[].size': worker(
    'machine: {disks: [{device: a, partitions: [{size: 0}, {size: 1GB}]}]}',
    'machine.disks[0].partitions[0].size',
  ),
  'v1alpha1 machine.kubelet.nodeIP.validSubnets[]': worker(
    'machine: {kubelet: {nodeIP: {validSubnets: [x]}}}',
    'machine.kubelet.nodeIP.validSubnets[0]',
  ),
  'v1alpha1 machine.kubelet.extraConfig': worker(
    'machine: {kubelet: {extraConfig: {cgroupRoot: /}}}',
    'machine.kubelet.extraConfig.cgroupRoot',
  ),
  'v1alpha1 machine.kubelet.extraConfig (2)': worker(
    'machine: {kubelet: {extraConfig: {resolvConf: /}}}',
    'machine.kubelet.extraConfig.resolvConf',
  ),
  'v1alpha1 machine.systemDiskEncryption.*.keys': worker(
    'machine: {systemDiskEncryption: {state: {provider: luks2, keys: [{slot: 0}]}}}',
    'machine.systemDiskEncryption.state.keys[0]',
  ),
  'v1alpha1 machine.logging.destinations[].endpoint': worker(
    'machine: {logging: {destinations: [{endpoint: "http://a:1", format: json_lines}]}}',
    'machine.logging.destinations[0].endpoint',
  ),
  'v1alpha1 machine.logging.destinations[].format': worker(
    'machine: {logging: {destinations: [{endpoint: "tcp://a:1", format: x}]}}',
    'machine.logging.destinations[0].format',
  ),
  'v1alpha1 machine.nodeLabels': worker('machine: {nodeLabels: {"a b": c}}', 'machine.nodeLabels'),
  'v1alpha1 machine.nodeAnnotations': worker('machine: {nodeAnnotations: {"a b": c}}', 'machine.nodeAnnotations'),
  'v1alpha1 machine.nodeAnnotations (2)': worker('machine: {nodeAnnotations: {talos.dev/owned-labels: c}}', 'machine.nodeAnnotations'),
  'v1alpha1 machine.nodeTaints': worker('machine: {nodeTaints: {a: "b:Never"}}', 'machine.nodeTaints.a'),
  'v1alpha1 machine.features.kubernetesTalosAPIAccess': worker(
    'machine: {features: {kubernetesTalosAPIAccess: {enabled: true}}}',
    'machine.features.kubernetesTalosAPIAccess',
  ),
  'v1alpha1 machine.features.kubernetesTalosAPIAccess.allowedRoles[]': plane(
    'machine: {features: {kubernetesTalosAPIAccess: {enabled: true, allowedRoles: [os:boss]}}}',
    'machine.features.kubernetesTalosAPIAccess.allowedRoles[0]',
  ),
  'v1alpha1 machine.features.nodeAddressSortAlgorithm': worker(
    'machine: {features: {nodeAddressSortAlgorithm: v3}}',
    'machine.features.nodeAddressSortAlgorithm',
  ),
  'v1alpha1 machine.baseRuntimeSpecOverrides': worker(
    'machine: {baseRuntimeSpecOverrides: {process: 1}}',
    'machine.baseRuntimeSpecOverrides',
  ),
  'v1alpha1 machine.registries.mirrors/config': text(
    'machine:\n  registries:\n    mirrors:\n      docker.io:\n',
    'machine.registries.mirrors',
  ),
  'v1alpha1 cluster.controlPlane.endpoint': worker(without('/cluster/controlPlane/endpoint'), 'cluster.controlPlane.endpoint'),
  'v1alpha1 cluster.network.dnsDomain': worker('cluster: {network: {dnsDomain: "a b"}}', 'cluster.network.dnsDomain'),
  'v1alpha1 cluster.network.cni.name': plane('cluster: {network: {cni: {name: calico}}}', 'cluster.network.cni.name'),
  'v1alpha1 cluster.network.cni.urls': plane('cluster: {network: {cni: {name: none, urls: ["https://a"]}}}', 'cluster.network.cni.urls'),
  'v1alpha1 cluster.network.cni.urls (2)': plane('cluster: {network: {cni: {name: custom}}}', 'cluster.network.cni.urls'),
  'v1alpha1 cluster.network.cni.flannel': plane(
    'cluster: {network: {cni: {name: none, flannel: {kubeNetworkPoliciesEnabled: true}}}}',
    'cluster.network.cni.flannel',
  ),
  'v1alpha1 cluster.externalCloudProvider.manifests': plane(
    'cluster: {externalCloudProvider: {enabled: false, manifests: ["https://a"]}}',
    'cluster.externalCloudProvider.manifests',
  ),
  'v1alpha1 cluster.etcd': worker('cluster: {etcd: {image: x}}', 'cluster.etcd'),
  'v1alpha1 cluster.etcd.subnet': plane('cluster: {etcd: {subnet: 10.0.0.0/8, advertisedSubnets: [10.0.0.0/8]}}', 'cluster.etcd'),
  'v1alpha1 cluster.etcd.advertisedSubnets[]': plane('cluster: {etcd: {advertisedSubnets: [x]}}', 'cluster.etcd.advertisedSubnets[0]'),
  'v1alpha1 cluster.etcd.ca': plane(without('/cluster/etcd/ca'), 'cluster.etcd.ca'),
  'v1alpha1 cluster.inlineManifests[].name': plane(
    set('/cluster/inlineManifests', [
      { name: 'a', contents: 'x' },
      { name: 'a', contents: 'y' },
    ]),
    'cluster.inlineManifests[1].name',
  ),
  'v1alpha1 cluster.discovery.registries.service': worker(
    'cluster: {discovery: {enabled: true, registries: {service: {endpoint: "https://a/b"}}}}',
    'cluster.discovery.registries.service',
  ),
  'v1alpha1 cluster.discovery.registries.service (2)': worker(without('/cluster/id'), 'cluster.id'),
  'v1alpha1 cluster.apiServer.authorizationConfig': plane(
    'cluster: {apiServer: {extraArgs: {authorization-mode: RBAC}, authorizationConfig: [{type: Node, name: n}]}}',
    'cluster.apiServer.extraArgs.authorization-mode',
  ),
  'v1alpha1 cluster.apiServer.resources': plane('cluster: {apiServer: {resources: {limits: {gpu: 1}}}}', 'cluster.apiServer.resources'),
  'UserVolumeConfig name': document(
    'UserVolumeConfig',
    `name: ${'a'.repeat(35)}\nprovisioning: {diskSelector: {match: "true"}, minSize: 1GB}`,
    'name',
  ),
  'UserVolumeConfig name (2)': document(
    'UserVolumeConfig',
    'name: a_b\nprovisioning: {diskSelector: {match: "true"}, minSize: 1GB}',
    'name',
  ),
  'RawVolumeConfig name': document('RawVolumeConfig', 'provisioning: {diskSelector: {match: "true"}, minSize: 1GB}', 'name'),
  'RawVolumeConfig name (2)': document('RawVolumeConfig', 'name: a_b\nprovisioning: {diskSelector: {match: "true"}, minSize: 1GB}', 'name'),
  'SwapVolumeConfig name': document(
    'SwapVolumeConfig',
    `name: ${'a'.repeat(35)}\nprovisioning: {diskSelector: {match: "true"}, minSize: 1GB}`,
    'name',
  ),
  'SwapVolumeConfig name (2)': document(
    'SwapVolumeConfig',
    'name: a.b\nprovisioning: {diskSelector: {match: "true"}, minSize: 1GB}',
    'name',
  ),
  'ExternalVolumeConfig name': document('ExternalVolumeConfig', 'filesystemType: virtiofs\nmount: {virtiofs: {tag: a}}', 'name'),
  'ExternalVolumeConfig name (2)': document(
    'ExternalVolumeConfig',
    'name: a/b\nfilesystemType: virtiofs\nmount: {virtiofs: {tag: a}}',
    'name',
  ),
  'ExistingVolumeConfig name': document('ExistingVolumeConfig', 'name: a b\ndiscovery: {volumeSelector: {match: "true"}}', 'name'),
  'ExistingVolumeConfig discovery.volumeSelector.match': document('ExistingVolumeConfig', 'name: a', 'discovery'),
  'UserVolumeConfig volumeType': document('UserVolumeConfig', volume('volumeType: file'), 'volumeType'),
  'UserVolumeConfig volumeType=directory': document('UserVolumeConfig', volume('volumeType: directory'), 'provisioning'),
  'UserVolumeConfig filesystem.type': document('UserVolumeConfig', volume('filesystem: {type: btrfs}'), 'filesystem.type'),
  'UserVolumeConfig filesystem.projectQuotaSupport': document(
    'UserVolumeConfig',
    volume('filesystem: {type: ext4, projectQuotaSupport: true}'),
    'filesystem.projectQuotaSupport',
  ),
  'UserVolumeConfig provisioning': document('UserVolumeConfig', 'name: v\nprovisioning: {minSize: 1GB}', 'provisioning'),
  'RawVolumeConfig provisioning': document('RawVolumeConfig', 'name: v\nprovisioning: {diskSelector: {match: "true"}}', 'provisioning'),
  'SwapVolumeConfig provisioning': document('SwapVolumeConfig', 'name: v', 'provisioning'),
  '*VolumeConfig provisioning.diskSelector.match': document(
    'RawVolumeConfig',
    'name: v\nprovisioning: {diskSelector: {match: " "}, minSize: 1GB}',
    'provisioning.diskSelector.match',
  ),
  '*VolumeConfig provisioning.minSize': document(
    'RawVolumeConfig',
    'name: v\nprovisioning: {diskSelector: {match: "true"}, minSize: 2GB, maxSize: 1GB}',
    'provisioning.minSize',
  ),
  '*VolumeConfig encryption.provider': document(
    'RawVolumeConfig',
    volume('encryption: {keys: [{slot: 0, nodeID: {}}]}'),
    'encryption.provider',
  ),
  '*VolumeConfig encryption.keys': document(
    'RawVolumeConfig',
    volume('encryption: {provider: luks2, keys: [{slot: 0, nodeID: {}}, {slot: 0, nodeID: {}}]}'),
    'encryption.keys',
  ),
  '*VolumeConfig encryption.keys[].tpm.options.pcrs[]': document(
    'RawVolumeConfig',
    volume('encryption: {provider: luks2, keys: [{slot: 0, tpm: {options: {pcrs: [24]}}}]}'),
    'encryption.keys[0].tpm.options.pcrs',
  ),
  'VolumeConfig name': document('VolumeConfig', 'name: OTHER', 'name'),
  'VolumeConfig name=STATE': document('VolumeConfig', 'name: STATE\nprovisioning: {minSize: 1GB}', 'provisioning'),
  'VolumeConfig encryption': both(
    'VolumeConfig',
    'name: STATE\nencryption: {provider: luks2, keys: [{slot: 0, nodeID: {}}]}',
    'machine: {systemDiskEncryption: {state: {provider: luks2, keys: [{slot: 0, nodeID: {}}]}}}',
  ),
  'ExternalVolumeConfig filesystemType': document('ExternalVolumeConfig', 'name: a\nfilesystemType: virtiofs', 'mount'),
  'ZswapConfig maxPoolPercent': document('ZswapConfig', 'maxPoolPercent: 101', 'maxPoolPercent'),
  'DiskRecoveryConfig recipients': document('DiskRecoveryConfig', 'recipients: []', 'recipients'),
  'DiskRecoveryConfig recipients[]': document('DiskRecoveryConfig', 'recipients: [age1x]', 'recipients[0]'),
  'DiskRecoveryConfig document': {
    ...document('DiskRecoveryConfig', 'recipients: [age1lvyvwawkr0mcnnnncaghunadrqkmuf9e6507x9y920xxpp866cnql7dp2z]', 'a container has no'),
    mode: 'container',
  },
  '*VolumeConfig encryption.keys (2)': worker(
    '---\napiVersion: v1alpha1\nkind: VolumeConfig\nname: STATE\nencryption: {provider: luks2, keys: [{slot: 0, tpm: {}}]}\n',
    'only the TPM opens STATE',
  ),
  '*VolumeConfig encryption.keys[].kms.endpoint': plane(
    '---\napiVersion: v1alpha1\nkind: VolumeConfig\nname: EPHEMERAL\nencryption: {provider: luks2, keys: [{slot: 0, kms: {endpoint: "sibling://"}}]}\n',
    'volume "EPHEMERAL": "sibling://" protects nothing on a control plane',
  ),
  'SiblingKeysConfig keys': document('SiblingKeysConfig', 'keys: []', 'keys'),
  'SiblingKeysConfig keys[]': document('SiblingKeysConfig', 'keys: [YQ==]', 'keys[0]'),
  'SiblingKeysConfig document': worker(
    `---\napiVersion: v1alpha1\nkind: SiblingKeysConfig\nkeys: [${key32}]\n`,
    'only control planes have this document',
  ),
  'RegistryAuthConfig name': document('RegistryAuthConfig', 'auth: YQ==', 'name'),
  'RegistryAuthConfig auth': document('RegistryAuthConfig', 'name: a\nauth: YQ==\nidentityToken: b', 'give only one'),
  'RegistryMirrorConfig name': document('RegistryMirrorConfig', 'endpoints: [{url: "https://a"}]', 'name'),
  'RegistryMirrorConfig endpoints[].url': document('RegistryMirrorConfig', 'name: a\nendpoints: [{url: "ftp://a"}]', 'endpoints[0].url'),
  'RegistryTLSConfig name': document('RegistryTLSConfig', 'insecureSkipVerify: true', 'name'),
  'RegistryTLSConfig ca': document('RegistryTLSConfig', 'name: a\nca: x', 'ca'),
  'RegistryTLSConfig clientIdentity': document('RegistryTLSConfig', 'name: a\nclientIdentity: {cert: x, key: y}', 'clientIdentity'),
  'BondConfig name': document('BondConfig', 'links: [a]\nbondMode: balance-rr', 'name'),
  'BridgeConfig name': document('BridgeConfig', 'links: [a]', 'name'),
  'DummyLinkConfig name': document('DummyLinkConfig', 'up: true', 'name'),
  'LinkConfig name': document('LinkConfig', 'up: true', 'name'),
  'VLANConfig name': document('VLANConfig', 'parent: a\nvlanID: 1', 'name'),
  'VRFConfig name': document('VRFConfig', 'links: [a]\ntable: 10', 'name'),
  'WireguardConfig name': document('WireguardConfig', `privateKey: ${key32}`, 'name'),
  'DHCPv4Config name': document('DHCPv4Config', 'clientIdentifier: mac', 'name'),
  'DHCPv6Config name': document('DHCPv6Config', 'clientIdentifier: mac', 'name'),
  'EthernetConfig name': document('EthernetConfig', 'rings: {rx: 1}', 'name'),
  '*Link documents addresses[].address': document('LinkConfig', 'name: a\naddresses: [{address: 0.0.0.0/0}]', 'addresses[0].address'),
  '*Link documents routes[]': document('LinkConfig', 'name: a\nroutes: [{gateway: 0.0.0.0}]', 'routes[0].gateway'),
  'BondConfig links': document('BondConfig', 'name: a\nbondMode: balance-rr', 'links'),
  'BondConfig bondMode': document('BondConfig', 'name: a\nlinks: [a]', 'bondMode'),
  'BondConfig miimon/updelay/downdelay': document('BondConfig', 'name: a\nlinks: [a]\nbondMode: 802.3ad', 'miimon'),
  'DHCPv4Config duidRaw': document('DHCPv4Config', 'name: a\nclientIdentifier: duid', 'duidRaw'),
  'DHCPv6Config duidRaw': document('DHCPv6Config', 'name: a\nclientIdentifier: mac\nduidRaw: "00:01"', 'duidRaw'),
  'HCloudVIPConfig name': document('HCloudVIPConfig', 'name: x\nlink: a\napiToken: t', 'name'),
  'HCloudVIPConfig link': document('HCloudVIPConfig', 'name: 1.1.1.1\napiToken: t', 'link'),
  'HCloudVIPConfig apiToken': document('HCloudVIPConfig', 'name: 1.1.1.1\nlink: a', 'apiToken'),
  'Layer2VIPConfig name': document('Layer2VIPConfig', 'name: x\nlink: a', 'name'),
  'Layer2VIPConfig link': document('Layer2VIPConfig', 'name: 1.1.1.1', 'link'),
  'HostnameConfig auto/hostname': document('HostnameConfig', 'auto: stable\nhostname: a', 'auto'),
  'HostnameConfig auto': document('HostnameConfig', 'auto: addr', 'auto'),
  'HostnameConfig hostname': document('HostnameConfig', `hostname: ${'a'.repeat(64)}`, 'hostname'),
  'HostnameConfig *': both('HostnameConfig', 'auto: stable', 'machine: {network: {hostname: a}}'),
  'KubeSpanConfig mtu': document('KubeSpanConfig', 'mtu: 1000', 'mtu'),
  'KubeSpanConfig filters.endpoints[]': document('KubeSpanConfig', 'filters: {endpoints: [x]}', 'filters.endpoints[0]'),
  'KubeSpanConfig *': both('KubeSpanConfig', 'enabled: true', 'machine: {network: {kubespan: {enabled: true}}}'),
  'LinkAliasConfig name': document('LinkAliasConfig', 'name: a%dx\nselector: {match: "true"}', 'name'),
  'LinkAliasConfig selector.match': document('LinkAliasConfig', 'name: a', 'selector'),
  'NetworkRuleConfig name': document('NetworkRuleConfig', 'portSelector: {ports: [1], protocol: tcp}', 'name'),
  'NetworkRuleConfig portSelector.ports': document(
    'NetworkRuleConfig',
    'name: a\nportSelector: {ports: [5-1], protocol: tcp}',
    'portSelector.ports',
  ),
  'NetworkRuleConfig ingress[].subnet': document(
    'NetworkRuleConfig',
    'name: a\nportSelector: {ports: [1], protocol: tcp}\ningress: [{subnet: x}]',
    'ingress[0].subnet',
  ),
  'RoutingRuleConfig name': document('RoutingRuleConfig', 'name: "32500"\ntable: "1"', 'name'),
  'RoutingRuleConfig table': document('RoutingRuleConfig', 'name: "5"\nsrc: 10.0.0.0/8', 'table'),
  'RoutingRuleConfig fwMask': document('RoutingRuleConfig', 'name: "5"\ntable: "1"\nfwMask: 1', 'fwMask'),
  'BlackholeRouteConfig name': document('BlackholeRouteConfig', 'name: x', 'name'),
  'StaticHostConfig name': document('StaticHostConfig', 'name: x\nhostnames: [a]', 'name'),
  'StaticHostConfig hostnames': document('StaticHostConfig', 'name: 1.1.1.1', 'hostnames'),
  'TCPProbeConfig name': document('TCPProbeConfig', 'endpoint: a:1', 'name'),
  'TCPProbeConfig endpoint': document('TCPProbeConfig', 'name: a', 'endpoint'),
  'TCPProbeConfig interval/failureThreshold/timeout': document('TCPProbeConfig', 'name: a\nendpoint: a:1\ninterval: -1s', 'interval'),
  'TimeSyncConfig bootTimeout': document('TimeSyncConfig', 'bootTimeout: -1s', 'bootTimeout'),
  'TimeSyncConfig ntp/ptp': document('TimeSyncConfig', 'ntp: {servers: [a]}\nptp: {devices: [b]}', 'ptp'),
  'TimeSyncConfig *': both('TimeSyncConfig', 'enabled: true', 'machine: {time: {servers: [a]}}'),
  'VLANConfig vlanID': document('VLANConfig', 'name: a\nparent: b\nvlanID: 5000', 'vlanID'),
  'VLANConfig parent': document('VLANConfig', 'name: a\nvlanID: 1', 'parent'),
  'VLANConfig vlanMode': document('VLANConfig', 'name: a\nparent: b\nvlanID: 1\nvlanMode: x', 'vlanMode'),
  'VRFConfig table': document('VRFConfig', 'name: a\nlinks: [b]\ntable: main', 'table'),
  'WireguardConfig privateKey': document('WireguardConfig', 'name: w\nprivateKey: x', 'privateKey'),
  'WireguardConfig listenPort': document('WireguardConfig', `${wireguard}listenPort: 65536`, 'listenPort'),
  'WireguardConfig peers[].publicKey': document('WireguardConfig', `${wireguard}peers: [{publicKey: x}]`, 'peers[0].publicKey'),
  'WireguardConfig peers[].presharedKey': document(
    'WireguardConfig',
    `${wireguard}peers: [{publicKey: ${key32}, presharedKey: x}]`,
    'peers[0].presharedKey',
  ),
  'WireguardConfig peers[].persistentKeepaliveInterval': document(
    'WireguardConfig',
    `${wireguard}peers: [{publicKey: ${key32}, persistentKeepaliveInterval: -1s}]`,
    'peers[0].persistentKeepaliveInterval',
  ),
  'EnvironmentConfig variables{key}': document('EnvironmentConfig', 'variables: {1a: b}', 'variables'),
  'EventSinkConfig endpoint': document('EventSinkConfig', 'endpoint: a', 'endpoint'),
  'TelemetryConfig prometheus': document('TelemetryConfig', 'prometheus: {listen: "0.0.0.0:9100"}', 'prometheus'),
  'TelemetryConfig prometheus.listen': document('TelemetryConfig', `prometheus: {bearerToken: ${token16}}`, 'prometheus.listen'),
  'TelemetryConfig prometheus.clientCA': document(
    'TelemetryConfig',
    'prometheus: {listen: "0.0.0.0:9100", clientCA: x}',
    'prometheus.clientCA',
  ),
  'TelemetryConfig prometheus.bearerToken': document(
    'TelemetryConfig',
    'prometheus: {listen: "0.0.0.0:9100", bearerToken: short}',
    'prometheus.bearerToken',
  ),
  'TelemetryConfig otlp': document('TelemetryConfig', 'otlp: {endpoint: "https://a"}', 'otlp'),
  'TelemetryConfig otlp.endpoint': document('TelemetryConfig', 'otlp: {endpoint: "https://a@b", traces: {}}', 'otlp.endpoint'),
  'TelemetryConfig otlp.headers{key}': document(
    'TelemetryConfig',
    'otlp: {endpoint: "https://a", traces: {}, headers: {"a b": c}}',
    'otlp.headers["a b"]',
  ),
  'TelemetryConfig otlp.timeout': document('TelemetryConfig', 'otlp: {endpoint: "https://a", traces: {}, timeout: 2m}', 'otlp.timeout'),
  'TelemetryConfig otlp.metrics.interval': document(
    'TelemetryConfig',
    'otlp: {endpoint: "https://a", metrics: {interval: 1s}}',
    'otlp.metrics.interval',
  ),
  'KmsgLogConfig name': document('KmsgLogConfig', 'url: "tcp://a:1"', 'name'),
  'KmsgLogConfig url': document('KmsgLogConfig', 'name: a\nurl: "tcp://a:1/b"', 'url'),
  'OOMConfig triggerExpression': document('OOMConfig', 'triggerExpression: " "', 'triggerExpression'),
  'OOMConfig cgroupRankingExpression': document('OOMConfig', 'cgroupRankingExpression: " "', 'cgroupRankingExpression'),
  'OOMConfig sampleInterval': document('OOMConfig', 'sampleInterval: -1s', 'sampleInterval'),
  'WatchdogTimerConfig device': document('WatchdogTimerConfig', 'timeout: 10s', 'device'),
  'WatchdogTimerConfig timeout': document('WatchdogTimerConfig', 'device: a\ntimeout: 5s', 'timeout'),
  'ExtensionServiceConfig name': document('ExtensionServiceConfig', 'environment: [A=b]', 'name'),
  'ExtensionServiceConfig configFiles/environment': document('ExtensionServiceConfig', 'name: a', ''),
  'ExtensionServiceConfig configFiles[]': document('ExtensionServiceConfig', 'name: a\nconfigFiles: [{content: x}]', 'configFiles[0]'),
  'ImageTrustedRootConfig trustedRoot': document(
    'ImageTrustedRootConfig',
    `trustedRoot: '{"mediaType": "application/json"}'`,
    'trustedRoot',
  ),
  'ImageVerificationConfig rules[].image': document('ImageVerificationConfig', 'rules: [{skip: true}]', 'rules[0].image'),
  'ImageVerificationConfig rules[]': document('ImageVerificationConfig', 'rules: [{image: a, skip: true, deny: true}]', 'rules[0]'),
  'ImageVerificationConfig rules[].keyless/publicKey': document(
    'ImageVerificationConfig',
    'rules: [{image: a, keyless: {issuer: i, subject: s}, publicKey: {certificate: c}}]',
    'rules[0]',
  ),
  'ImageVerificationConfig rules[].keyless': document(
    'ImageVerificationConfig',
    'rules: [{image: a, keyless: {subject: s}}]',
    'rules[0].keyless',
  ),
  'ImageVerificationConfig rules[].publicKey.certificate': document(
    'ImageVerificationConfig',
    'rules: [{image: a, publicKey: {}}]',
    'rules[0].publicKey',
  ),
  'SideroLinkConfig apiUrl': document('SideroLinkConfig', 'apiUrl: "https://a/b"', 'apiUrl'),
}

/** Rules about facts that only a running machine has, and where they are decided. */
const atRunTime: Record<string, string> = {
  'v1alpha1 machine.install.diskSelector': 'the installer looks for the disk',
  'v1alpha1 machine.install.extraKernelArgs (2)': 'the installer knows the boot loader',
  'v1alpha1 machine.kubelet.image': 'an image that is not there is reported by the kubelet service',
  'v1alpha1 cluster.apiServer.image': 'an image that is not there is reported by its pod',
  'v1alpha1 *': 'validate --strict counts warnings as errors (tests of talosctl)',
}

test('every rule of the contract has a case here, and every case a rule', () => {
  expect([...Object.keys(cases), ...Object.keys(atRunTime)].sort()).toEqual([...names.keys()].sort())
})

function findings({ read, mode }: Case): { errors: string[]; warnings: string[] } {
  const line = ({ path, message }: { path?: string; message: string }) => [path, message].filter(Boolean).join(': ')
  try {
    const { errors, warnings } = read().validate(mode)
    return { errors: errors.map(line), warnings: warnings.map(line) }
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    return { errors: error.issues.map(line), warnings: [] }
  }
}

for (const [name, [, , rule, severity]] of names) {
  const given = cases[name]
  if (!given) continue
  test(`${name}: ${rule}`, () => {
    const found = findings(given)[severity === 'warning' ? 'warnings' : 'errors']
    expect(found.find((each) => each.startsWith(given.at)) ?? found).toBeTypeOf('string')
  })
}
