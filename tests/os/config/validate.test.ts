import { describe, expect, test } from 'bun:test'
import type { Mode } from '../../../src/document/kind.ts'
import { ConfigContainer } from '../../../src/os/config/container.ts'
import { generate } from '../../../src/os/config/generate/generate.ts'
import { secrets } from './machine.ts'

const pem = (label: string) => Buffer.from(`-----BEGIN ${label}-----\nYQ==\n-----END ${label}-----\n`).toString('base64')

const good = {
  controlplane: generate('controlplane', { clusterName: 'x', endpoint: 'https://10.0.0.1:6443', secrets }),
  worker: generate('worker', { clusterName: 'x', endpoint: 'https://10.0.0.1:6443', secrets }),
}

/** Messages for a valid configuration after a change: `path: message`, warnings with a "!". */
function findings(type: keyof typeof good, patch: string, mode: Mode = 'metal'): string[] {
  const { errors, warnings } = good[type].patch(patch).validate(mode)
  return [...errors.map(({ path, message }) => `${path}: ${message}`), ...warnings.map(({ path, message }) => `!${path}: ${message}`)]
}

const remove = (path: string) => JSON.stringify([{ op: 'remove', path }])

describe('the legacy document', () => {
  test.each([
    ['a machine section', 'controlplane', remove('/machine'), 'machine: the section is required'],
    ['a cluster section', 'worker', remove('/cluster'), 'cluster: the section is required'],
    ['persistence', 'worker', 'persist: false', 'persist: "persist: false" is not supported'],
    ['a known type', 'worker', 'machine: {type: boss}', 'machine.type: "boss" is not one of controlplane, worker'],
    ['a missing type', 'worker', remove('/machine/type'), '!machine.type: no type means "worker": say so'],
    ['a place to install on', 'worker', remove('/machine/install'), 'machine.install: required: set the disk to install on'],
    ['a disk', 'worker', remove('/machine/install/disk'), 'machine.install.disk: a disk or a diskSelector is required'],
    [
      'secrets',
      'controlplane',
      remove('/machine/ca'),
      'machine.ca: required: generate the secrets with "talosctl gen secrets" or "talosctl gen config"',
    ],
    ['the authority’s key', 'controlplane', remove('/machine/ca/key'), 'machine.ca.key: a control plane needs the key of the authority'],
    ['a token for the machine API', 'worker', remove('/machine/token'), 'machine.token: required: generate the secrets'],
    ['a token for Kubernetes', 'worker', remove('/cluster/token'), 'cluster.token: required: generate the secrets'],
    ['the authority of Kubernetes', 'worker', remove('/cluster/ca'), 'cluster.ca: required: generate the secrets'],
    ['its key', 'controlplane', remove('/cluster/ca/key'), 'cluster.ca.key: a control plane needs the key of the authority'],
    [
      'the authority of aggregation',
      'controlplane',
      remove('/cluster/aggregatorCA'),
      'cluster.aggregatorCA: required: generate the secrets',
    ],
    ['the key of tokens', 'controlplane', remove('/cluster/serviceAccount'), 'cluster.serviceAccount.key: required: generate the secrets'],
    ['an etcd on control planes', 'controlplane', remove('/cluster/etcd'), 'cluster.etcd.ca: required: generate the secrets'],
    [
      'whole keys',
      'controlplane',
      `cluster: {serviceAccount: {key: ${pem('RSA PRIVATE KEY').slice(0, 40)}}}`,
      'cluster.serviceAccount.key: not a private key: base64 of PEM is expected, and this is something else or cut off',
    ],
    [
      'certificates where certificates belong',
      'worker',
      `machine: {ca: {crt: ${pem('PRIVATE KEY')}}}`,
      'machine.ca.crt: not a certificate: base64 of PEM is expected, and this is something else or cut off',
    ],
    ['no key on a worker', 'worker', 'machine: {ca: {key: YQ==}}', 'machine.ca.key: a worker does not hold the key of the authority'],
    [
      'etcd’s authority',
      'controlplane',
      remove('/cluster/etcd/ca'),
      'cluster.etcd.ca: certificate and key of the authority of etcd are required',
    ],
    ['etcd only on control planes', 'worker', 'cluster: {etcd: {image: x}}', 'cluster.etcd: only control planes run etcd'],
    [
      'an endpoint',
      'worker',
      remove('/cluster/controlPlane/endpoint'),
      'cluster.controlPlane.endpoint: the endpoint of the cluster is required, like "https://10.0.0.1:6443"',
    ],
    ['a cluster id for discovery', 'worker', remove('/cluster/id'), 'cluster.id: the discovery service needs the id of the cluster'],
    [
      'sane subnets',
      'worker',
      'machine: {kubelet: {nodeIP: {validSubnets: [10.0.0.0/8, "!10.1.1.1", x]}}}',
      'machine.kubelet.nodeIP.validSubnets[2]: "x" is not a subnet or address',
    ],
    [
      'hands off the kubelet’s core',
      'worker',
      'machine: {kubelet: {extraConfig: {port: 1}}}',
      'machine.kubelet.extraConfig.port: "port" is set by the system and cannot be changed here',
    ],
    ['labels', 'worker', 'machine: {nodeLabels: {"a b": c}}', 'machine.nodeLabels["a b"]: "a b" may hold only letters'],
    ['taints', 'worker', 'machine: {nodeTaints: {a: "b:Never"}}', 'machine.nodeTaints.a: "b:Never" is not an effect'],
    [
      'own addresses',
      'worker',
      'machine: {network: {interfaces: [{interface: a, vip: {ip: 1.1.1.1}}]}}',
      'machine.network.interfaces[0].vip: only control planes share an address',
    ],
    [
      'an interface or a selector',
      'worker',
      'machine: {network: {interfaces: [{mtu: 1400}]}}',
      'machine.network.interfaces[0]: one of interface and deviceSelector is required',
    ],
    [
      'a resolver’s address',
      'worker',
      'machine: {network: {nameservers: [x]}}',
      'machine.network.nameservers[0]: "x" is not an IP address',
    ],
    [
      'a known network plugin',
      'controlplane',
      'cluster: {network: {cni: {name: calico}}}',
      'cluster.network.cni.name: "calico" is not one of flannel, custom, none',
    ],
    [
      'manifests of a custom plugin',
      'controlplane',
      'cluster: {network: {cni: {name: custom}}}',
      '!cluster.network.cni.urls: no manifests: the cluster has no network until one is installed',
    ],
    [
      'unique manifests',
      'controlplane',
      '[{op: add, path: /cluster/inlineManifests, value: [{name: a, contents: x}, {name: a, contents: y}]}]',
      'cluster.inlineManifests[1].name: "a" is used twice',
    ],
    [
      'access only from control planes',
      'worker',
      'machine: {features: {kubernetesTalosAPIAccess: {enabled: true}}}',
      'machine.features.kubernetesTalosAPIAccess: only control planes give access',
    ],
    [
      'the last partition for the rest',
      'worker',
      'machine: {disks: [{device: a, partitions: [{size: 0}, {size: 1GB}]}]}',
      'machine.disks[0].partitions[0].size: only the last partition may take the remaining space',
    ],
    [
      'a log format',
      'worker',
      'machine: {logging: {destinations: [{endpoint: "tcp://a:1", format: text}]}}',
      'machine.logging.destinations[0].format: the format has to be "json_lines"',
    ],
    [
      'a hostname in one place',
      'worker',
      'machine: {network: {hostname: a}}',
      '"machine.network.hostname" is set in the v1alpha1 document too: keep one of the two',
    ],
  ] as const)('needs %s', (_, type, patch, message) => {
    const found = findings(type, patch)
    expect(found.find((each) => each.includes(message)) ?? found).toBeTypeOf('string')
  })

  test('a container needs its resolver', () => {
    expect(findings('worker', remove('/machine/features/hostDNS'), 'container')).toEqual([
      'machine.features.hostDNS: a container needs "enabled: true" and "forwardKubeDNSToHost: true"',
    ])
  })

  test('a finding has its place', () => {
    const { errors } = ConfigContainer.parse('machine:\n  type: worker\n  ca: {crt: YQ==}\ncluster:\n  controlPlane: {}\n').validate(
      'container',
    )
    expect(errors.find(({ path }) => path === 'cluster.controlPlane.endpoint')).toMatchObject({ document: 'v1alpha1', line: 5, column: 3 })
  })
})

describe('other documents', () => {
  const check = (text: string) => {
    const { errors, warnings } = ConfigContainer.parse(`apiVersion: v1alpha1\n${text}`).validate('metal')
    return [...errors, ...warnings].map(({ path, message }) => [path, message].filter(Boolean).join(': '))
  }
  test.each([
    ['kind: HostnameConfig\nauto: stable\nhostname: a\n', 'auto: set either hostname or "auto: stable", not both'],
    ['kind: HostnameConfig\n', 'one of hostname and "auto: stable" is required'],
    ['kind: BondConfig\nname: b\nlinks: [a]\n', 'bondMode: a bond mode is required'],
    ['kind: VLANConfig\nname: v\nparent: a\nvlanID: 5000\n', 'vlanID: a VLAN has an ID from 1 to 4094'],
    ['kind: WireguardConfig\nname: w\nprivateKey: short\n', 'privateKey: a private key is required: base64 of 32 bytes'],
    ['kind: NetworkRuleConfig\nname: r\nportSelector: {ports: [1-10, 5], protocol: tcp}\n', 'portSelector.ports: port ranges overlap'],
    ['kind: RoutingRuleConfig\nname: "32500"\ntable: 1\n', 'name: the name has to be the priority, from 1 to 32765 and not 32500'],
    ['kind: StaticHostConfig\nname: x\nhostnames: [a]\n', 'name: the name has to be an IP address'],
    ['kind: VolumeConfig\nname: OTHER\n', 'name: the name has to be STATE, EPHEMERAL or IMAGECACHE'],
    ['kind: UserVolumeConfig\nname: a_b\n', 'name: "a_b" may hold only letters, digits and dashes'],
    [
      'kind: UserVolumeConfig\nname: a\nprovisioning: {diskSelector: {match: x}, minSize: 2GB, maxSize: 1GB}\n',
      'provisioning.minSize: 2GB is more than maxSize 1GB',
    ],
    ['kind: WatchdogTimerConfig\ndevice: /dev/watchdog0\ntimeout: 5s\n', 'timeout: 5s is less than 10s'],
    ['kind: KmsgLogConfig\nname: a\nurl: tcp://host/\n', 'url: a URL with a port is required'],
    ['kind: TimeSyncConfig\nntp: {servers: [a]}\nptp: {devices: [b]}\n', 'ptp: ntp and ptp exclude each other'],
    ['kind: RegistryAuthConfig\nname: a\nusername: b\nauth: c\n', 'give only one of username with password, auth, and identityToken'],
    ['kind: EventSinkConfig\nendpoint: host\n', 'endpoint: an endpoint is a host and a port'],
    ['kind: EnvironmentConfig\nvariables: {1a: b}\n', 'variables.1a: "1a" is not the name of a variable'],
    ['kind: SideroLinkConfig\napiUrl: https://a/b\n', 'apiUrl: the URL cannot have a path'],
    ['kind: SideroLinkConfig\napiUrl: grpc://a\n', 'apiUrl: grpc:// needs a port'],
    ['kind: ImageVerificationConfig\nrules: [{image: a, skip: true, deny: true}]\n', 'rules[0]: skip and deny exclude each other'],
  ])('%j', (text, message) => {
    const found = check(text)
    expect(found.find((each) => each.startsWith(message)) ?? found).toBeTypeOf('string')
  })
})
