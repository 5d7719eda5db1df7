/** What is known to be wrong before it takes effect is refused when it is applied, and by `talosctl validate`. */
import { describe, expect, test } from 'bun:test'
import { parseConfig } from '../../../src/os/config/parse.ts'
import { missingFileRules } from '../../../src/os/files/user-files.ts'
import { settings } from '../../../src/os/k8s/documents/settings.ts'
import { etcdVersion, kubernetesVersion } from '../../../src/os/k8s/images.ts'
import { newCA } from '../../../src/pki/certificate.ts'
import { config, whole } from './machine.ts'

/** Messages for a valid configuration of a control plane after a change: warnings with a "!". */
function findings(patch: object): string[] {
  const { errors, warnings } = whole.controlplane.patch(JSON.stringify(patch)).validate('metal')
  return [...errors.map(({ path, message }) => `${path}: ${message}`), ...warnings.map(({ path, message }) => `!${path}: ${message}`)]
}

const base64 = (text: string | Buffer) => Buffer.from(text).toString('base64')
const other = newCA({ subject: { commonName: 'other' }, kind: 'ecdsa' })

describe('the name of a registry that leads out of the folder it is written to is refused', () => {
  const endpoints = ['https://mirror.test']
  const problems = (text: string) =>
    parseConfig(text)
      .validate('metal')
      .errors.map(({ message }) => message)

  test.each(['../../etc', '..', 'a/b', '/etc'])('%s', (name) => {
    expect(() => findings({ machine: { registries: { mirrors: { [name]: { endpoints } } } } })).toThrow('not the name of a registry')
    for (const [kind, more] of Object.entries({
      RegistryMirrorConfig: { endpoints: [{ url: endpoints[0] }] },
      RegistryTLSConfig: {},
      RegistryAuthConfig: {},
    })) {
      const document = JSON.stringify({ apiVersion: 'v1alpha1', kind, name, ...more })
      expect(problems(`${config('controlplane')}---\n${document}\n`)).toContainEqual(
        expect.stringContaining('is not the name of a registry'),
      )
    }
  })
})

test('a seccomp profile is one file', () => {
  const about = (...names: (string | undefined)[]) =>
    findings({ machine: { seccompProfiles: names.map((name) => ({ ...(name !== undefined && { name }), value: {} })) } })
  expect(about('audit.json', 'deny')).toEqual([])
  for (const name of [undefined, '', '..', 'pods/audit.json'])
    expect(about('first', name)).toEqual([expect.stringContaining('machine.seccompProfiles[1].name: the name of a file is required')])
})

describe('owners of an extra mount', () => {
  const ids = [{ containerID: 0, hostID: 1000, size: 1 }]
  const about = (mount: object) =>
    findings({ machine: { kubelet: { extraMounts: [{ source: '/var/a', type: 'bind', uidMappings: ids, gidMappings: ids, ...mount }] } } })

  test('are mapped outside of what the kubelet shares with the machine', () => {
    expect(about({ destination: '/data' })).toEqual([])
  })

  test.each([
    ['/var is shared', { destination: '/var/data' }, 'owners are not mapped below /var,'],
    ['groups are missing', { destination: '/data', gidMappings: [] }, 'users and groups are mapped together'],
    ['it is no bind', { destination: '/data', type: 'tmpfs' }, 'only a bind has mappings'],
    ['nothing is mapped', { destination: '/data', uidMappings: [{ containerID: 0, hostID: 1 }] }, 'a size of at least 1 is required'],
  ])('are refused where %s', (_, mount, message) => {
    expect(about(mount)).toEqual([expect.stringContaining(`machine.kubelet.extraMounts[0].uidMappings: ${message}`)])
  })
})

test('the connection of the scheduler is a map', () => {
  const about = (clientConnection: unknown) => findings({ cluster: { scheduler: { config: { clientConnection } } } })
  expect(about({ qps: 100 })).toEqual([])
  expect(about('fast')).toEqual([expect.stringContaining('cluster.scheduler.config.clientConnection: a map is required')])
})

describe('flags of the programs inside', () => {
  test('are of the releases inside', () => {
    expect(Object.fromEntries(settings().versions)).toEqual({ kubernetes: kubernetesVersion, etcd: etcdVersion })
    expect([...settings().flags].filter(([, flags]) => flags.size < 50)).toEqual([])
  })

  test('that they have, with values of their types, are accepted', () => {
    expect(
      findings({
        machine: { kubelet: { extraArgs: { 'rotate-server-certificates': 'true', v: '4', 'feature-gates': 'NodeSwap=true' } } },
        cluster: {
          apiServer: {
            extraArgs: { 'feature-gates': ['kube:NodeSwap=true,AllBeta=false'], 'oidc-issuer-url': 'https://x', profiling: 'F' },
          },
          controllerManager: { extraArgs: { 'node-monitor-grace-period': '1m30s', 'bind-address': '0.0.0.0' } },
          scheduler: { extraArgs: { 'kube-api-qps': '1e2', leader_elect: 'true' } },
          proxy: { extraArgs: { 'nodeport-addresses': '0.0.0.0/0', 'ipvs-strict-arp': 'true' } },
          etcd: { extraArgs: { 'heartbeat-interval': '200', 'listen-metrics-urls': 'http://0.0.0.0:2381', 'max-request-bytes': '0x1000' } },
        },
      }),
    ).toEqual([])
  })

  test.each([
    ['machine.kubelet', 'no-such-flag', '1', `"no-such-flag" is not a flag of kubelet v${kubernetesVersion}`],
    [
      'machine.kubelet',
      'max-pods',
      'many',
      `"many" is not a whole number in the range for the flag "max-pods" of kubelet v${kubernetesVersion}`,
    ],
    ['machine.kubelet', 'max-pods', '2147483648', '"2147483648" is not a whole number'],
    ['machine.kubelet', 'feature-gates', 'NodeSwop=true', '"NodeSwop" is not a feature gate (did you mean "NodeSwap"?) of kubelet'],
    ['cluster.apiServer', '--profiling', 'false', '"--profiling" is not a flag (did you mean "profiling"?) of kube-apiserver'],
    ['cluster.apiServer', 'anonymous-auth', 'maybe', '"maybe" is not true or false for the flag "anonymous-auth" of kube-apiserver'],
    ['cluster.controllerManager', 'node-monitor-period', '5', '"5" is not a duration, like "30s", for the flag "node-monitor-period"'],
    ['cluster.scheduler', 'kube-api-qps', 'fast', '"fast" is not a number for the flag "kube-api-qps" of kube-scheduler'],
    ['cluster.proxy', 'proxy-mod', 'nftables', '"proxy-mod" is not a flag (did you mean "proxy-mode"?) of kube-proxy'],
    [
      'cluster.etcd',
      'heartbeat_interval',
      '250',
      `"heartbeat_interval" is not a flag (did you mean "heartbeat-interval"?) of etcd v${etcdVersion}`,
    ],
    ['cluster.etcd', 'auto-compaction', '1h', '"auto-compaction" is not a flag'],
    ['cluster.etcd', 'election-timeout', '-1', '"-1" is not a whole number in the range for the flag "election-timeout" of etcd'],
  ])('%s: %s=%s is refused, and only warned of with an image of another release', (path, flag, value, message) => {
    const [root = '', component = ''] = path.split('.')
    const patch = (more: object) => ({ [root]: { [component]: { extraArgs: { [flag]: value }, ...more } } })
    const [finding, ...rest] = findings(patch({}))
    expect(rest).toEqual([])
    expect(finding).toStartWith(`${path}.extraArgs.${flag}: ${message}`)
    expect(findings(patch({ image: 'registry.example/x:v1.0.0@sha256:abc' }))).toEqual([
      expect.stringMatching(/^!.*the image configured may differ$/),
    ])
  })
})

test.each([
  ['machine.kubelet', { config: '/x' }, 'config: the system sets the flag "config" of kubelet itself: remove it from extraArgs'],
  ['cluster.apiServer', { tls_cert_file: '/x' }, 'tls_cert_file: the system sets the flag "tls_cert_file" of kube-apiserver itself'],
  ['cluster.etcd', { 'data-dir': '/x' }, 'data-dir: the system sets the flag "data-dir" of etcd itself'],
  ['cluster.etcd', { 'election-timeout': '60000' }, 'election-timeout: etcd does not start with an election timeout of more than 50000 ms'],
  [
    'cluster.etcd',
    { 'heartbeat-interval': '500', 'election-timeout': '1000' },
    'election-timeout: etcd does not start with an election timeout (1000 ms) of less than 5 heartbeats (2500 ms)',
  ],
  ['cluster.etcd', { 'heartbeat-interval': '500' }, 'heartbeat-interval: etcd does not start with an election timeout (1000 ms)'],
])('%s does not start with %o', (path, extraArgs, message) => {
  const [root = '', component = ''] = path.split('.')
  const [finding, ...rest] = findings({ [root]: { [component]: { extraArgs } } })
  expect(rest).toEqual([])
  expect(finding).toStartWith(`${path}.extraArgs.${message}`)
})

describe('fields of the kubelet', () => {
  test('that it has, with values of their types, are accepted', () => {
    expect(
      findings({
        machine: {
          kubelet: {
            extraConfig: {
              serverTLSBootstrap: true,
              maxPods: 250,
              imageGCHighThresholdPercent: 85,
              nodeStatusUpdateFrequency: '10s',
              evictionHard: { 'memory.available': '100Mi' },
              featureGates: { NodeSwap: true },
              memorySwap: { swapBehavior: 'LimitedSwap' },
              shutdownGracePeriodByPodPriority: [{ priority: 1, shutdownGracePeriodSeconds: 10 }],
              reservedMemory: [{ numaNode: 0, limits: { memory: '1Gi' } }],
              logging: { format: 'json', options: { json: { infoBufferSize: '64Ki' } } },
            },
          },
        },
      }),
    ).toEqual([])
  })

  test.each([
    [
      { maxPod: 1 },
      `maxPod: unknown field "maxPod" (did you mean "maxPods"?): the KubeletConfiguration of v${kubernetesVersion} does not have it`,
    ],
    [{ maxPods: '110' }, 'maxPods: expected a whole number of 32 bits, got "110"'],
    [{ serverTLSBootstrap: 'yes' }, 'serverTLSBootstrap: expected true or false, got "yes"'],
    [{ syncFrequency: 60 }, 'syncFrequency: expected a duration, like "30s", got 60'],
    [{ evictionHard: ['x'] }, 'evictionHard: expected a map, got ["x"]'],
    [{ evictionHard: { a: 1 } }, 'evictionHard.a: expected a string, got 1'],
    [{ clusterDNS: '10.96.0.10' }, 'clusterDNS: expected a list, got "10.96.0.10"'],
    [{ logging: { options: { jsn: {} } } }, 'logging.options.jsn: unknown field "jsn" (did you mean "json"?)'],
    [{ featureGates: { Nope: true } }, 'featureGates.Nope: "Nope" is not a feature gate'],
    [
      { reservedMemory: [{ numaNode: 0, limits: { memory: 'much' } }] },
      'reservedMemory[0].limits.memory: expected a quantity, like "100Mi", got "much"',
    ],
    [{ apiVersion: 'x' }, 'apiVersion: "apiVersion" is set by the system and cannot be changed here'],
  ])('%j is refused', (extraConfig, message) => {
    const [finding, ...rest] = findings({ machine: { kubelet: { extraConfig } } })
    expect(rest).toEqual([])
    expect(finding).toStartWith(`machine.kubelet.extraConfig.${message}`)
  })

  test('of another release are only warned of', () => {
    expect(findings({ machine: { kubelet: { image: 'x/kubelet:v1.35.0', extraConfig: { newField: 1 } } } })).toEqual([
      expect.stringMatching(/^!machine\.kubelet\.extraConfig\.newField: unknown field .*; the kubelet image configured may differ$/),
    ])
  })
})

describe('secrets', () => {
  test.each([
    [{ cluster: { secret: 'c2hvcnQ=' } }, 'cluster.secret: expected base64 of 32 bytes, got 5 bytes'],
    [{ cluster: { secret: 'no base64!' } }, 'cluster.secret: expected base64 of 32 bytes, got no base64'],
    [
      { cluster: { secretboxEncryptionSecret: base64(Buffer.alloc(31)) } },
      'cluster.secretboxEncryptionSecret: expected base64 of 32 bytes, got 31 bytes',
    ],
    [
      { cluster: { aescbcEncryptionSecret: base64(Buffer.alloc(20)) } },
      'cluster.aescbcEncryptionSecret: expected base64 of 16, 24, 32 bytes, got 20 bytes',
    ],
    [{ cluster: { token: 'ABCDEF.0123456789abcdef' } }, 'cluster.token: not a bootstrap token of Kubernetes'],
    [{ machine: { token: 'x' } }, '!machine.token: 1 characters can be guessed'],
    [{ cluster: { id: 'with space' } }, 'cluster.id: expected at most 256 printable characters without spaces'],
    [{ cluster: { serviceAccount: { key: base64(other.crt) } } }, 'cluster.serviceAccount.key: not a private key'],
    [{ machine: { ca: { key: base64(other.key) } } }, 'machine.ca.key: not the key of the certificate beside it'],
    [{ cluster: { etcd: { ca: { crt: base64(other.crt) } } } }, 'cluster.etcd.ca.key: not the key of the certificate beside it'],
    [{ cluster: { ca: { crt: base64(other.crt.replace('MII', 'AII')) } } }, 'cluster.ca.crt: not a certificate'],
  ])('%#: a form or length with which something would not start is refused', (patch, message) => {
    expect(findings(patch)).toEqual([expect.stringContaining(message)])
  })
})

describe('machine.files', () => {
  const file = (path: string, op?: string) => findings({ machine: { files: [{ path, content: '', ...(op && { op }) }] } })

  test('may be made where this system can write', () => {
    expect(file('/var/etc/a', 'create')).toEqual([])
    expect(file('/etc/cri/conf.d/20-customization.part', 'create')).toEqual([])
    expect(file('/etc/profile', 'overwrite')).toEqual([])
  })

  test('are refused elsewhere', () => {
    expect(file('/etc/a', 'create')).toEqual([
      expect.stringContaining('machine.files[0].path: "/etc/a" is read-only: files can be created only below /var/'),
    ])
    expect(file('/var/../etc/a', 'create')).toEqual([expect.stringContaining('must be an absolute path of a file')])
    expect(file('/var/a')).toEqual(['machine.files[0].op: one of create, append and overwrite is required'])
  })

  test('to append to or overwrite must exist on this machine, or be created before', () => {
    const found: string[] = []
    const report = { error: (path: readonly unknown[], message: string) => void found.push(`${path.join('.')}: ${message}`), warning() {} }
    const files = { exists: (path: string) => path === '/etc/profile' }
    missingFileRules(
      files,
      [
        { path: '/etc/profile', op: 'append' },
        { path: '/var/new', op: 'create' },
        { path: '/var/new', op: 'append' },
        { path: '/etc/gone', op: 'overwrite' },
      ],
      report,
    )
    expect(found).toEqual(['machine.files.3.path: "/etc/gone" is not there to overwrite'])
  })
})
