import { describe, expect, test } from 'bun:test'
import { Glob } from 'bun'
import fc from 'fast-check'
import protobuf from 'protobufjs'
import { decodeSpec, encodeSpec } from '../../src/rpc/resource-codec.ts'
import { enumNames, messageFields, specFields } from '../../src/rpc/resource-shapes.ts'
import { specYaml } from '../../src/rpc/resource-yaml.ts'
import { ProtoError } from '../../src/rpc/wire.ts'
import { runs } from '../support/runs.ts'

const folder = `${import.meta.dir}/../../proto`

async function rows(file: string): Promise<string[][]> {
  const text = await Bun.file(`${import.meta.dir}/../proto/contract/${file}`).text()
  return text
    .split('\n')
    .filter((line) => line !== '')
    .slice(1)
    .map((line) => line.split('\t'))
}

const table = await rows('resource-spec-yaml.tsv')

describe('the shapes of specs', () => {
  test('have every type and key of the table, with its number and what YAML omits', () => {
    for (const [type = '', path = '', , omitempty, , , number] of table) {
      if (path === '' || path === '(empty)' || path === '(whole spec)') {
        expect({ type, known: specFields(type) !== undefined }).toEqual({ type, known: true })
        continue
      }
      const keys = path.replace(/\[\]|\{\w+\}/g, '').split('.')
      let fields = specFields(type)!
      for (const key of keys.slice(0, -1)) fields = messageFields(fields.find((field) => field.key === key)!.of)
      const found = fields.find((field) => field.key === keys.at(-1))
      // Mounts and URLs have no numbers in the table; a URL is one form here.
      if (!found && number === '') continue
      expect({ type, path, omitted: found?.omitted }).toEqual({ type, path, omitted: omitempty === 'yes' })
      if (number !== '') expect({ type, path, number: found?.id }).toEqual({ type, path, number: Number(number) })
    }
  })

  test('name the numbers of enums as the table does', async () => {
    for (const [name = '', number, text = '', , used] of await rows('resource-yaml-enums.tsv')) {
      if (used !== 'yes' || name === 'nethelpers.RoutingTable') continue
      expect({ name, number, text: enumNames(name).byNumber.get(Number(number)) }).toEqual({ name, number, text })
    }
  })

  test('agree with the .proto files', async () => {
    const root = new protobuf.Root()
    for (const name of ['any', 'duration', 'empty', 'struct', 'timestamp'])
      root.addJSON(protobuf.common.get(`google/protobuf/${name}.proto`)!.nested!)
    for await (const file of new Glob('{talos,cosi,resource,google}/**/*.proto').scan(folder))
      protobuf.parse(await Bun.file(`${folder}/${file}`).text(), root)
    protobuf.parse(await Bun.file(`${folder}/common.proto`).text(), root)
    root.resolveAll()
    const seen = new Set<string>()
    const check = (message: string) => {
      if (seen.has(message) || message === 'network.DNSUpstreamSpec') return
      seen.add(message)
      const full = /^(cosi|resource|google)\./.test(message) ? message : `talos.resource.definitions.${message}`
      const type = root.lookupType(full)
      for (const field of messageFields(message)) {
        if (field.id === 0) continue
        const holder = field.inside ? (type.fieldsById[field.inside]!.resolvedType as protobuf.Type) : type
        const proto = holder.fieldsById[field.id]
        expect({ message, key: field.key, many: field.form === 'pairs' ? 'one' : manyOf(proto) }).toEqual({
          message,
          key: field.key,
          many: field.many,
        })
        if (field.form === 'message') {
          expect(proto?.resolvedType?.fullName).toEndWith(field.of)
          check(field.of)
        } else expect({ message, key: field.key, form: field.form, type: proto?.resolvedType?.name ?? proto?.type }).toSatisfy(agrees)
      }
    }
    for (const [type = ''] of table) {
      const line = (await Bun.file(`${import.meta.dir}/../../src/rpc/resource-shapes.txt`).text())
        .split('\n')
        .find((text) => text.startsWith(`${type} `))
      if (line) check(line.split(' ')[1]!)
    }
    expect(seen.size).toBeGreaterThan(150)
  })
})

function manyOf(field: protobuf.Field | undefined): string {
  return field instanceof protobuf.MapField
    ? 'map'
    : field?.repeated
      ? field.resolvedType?.name === 'EthernetFeatureStatus'
        ? 'one'
        : 'list'
      : 'one'
}

const wanted: Record<string, RegExp> = {
  string: /^string$/,
  bool: /^bool$/,
  int: /^int(32|64)$/,
  uint: /^(uint(32|64)|NethelpersICMPType)$/,
  double: /^double$/,
  bytes: /^bytes$/,
  text: /^bytes$/,
  base64: /^bytes$/,
  yaml: /^bytes$/,
  mac: /^bytes$/,
  enum: /^(?!string|bytes|bool)/,
  flags: /^(uint32|Nethelpers\w+)$/,
  ip: /^NetIP$/,
  cidr: /^NetIPPrefix$/,
  hostport: /^NetIPPort$/,
  duration: /^Duration$/,
  timestamp: /^Timestamp$/,
  url: /^URL$/,
  crtkey: /^PEMEncodedCertificateAndKey$/,
  crt: /^PEMEncodedCertificate$/,
  key: /^PEMEncodedKey$/,
  struct: /^Struct$/,
  wrapped: /^SingleManifest$/,
  pairs: /^EthernetFeatureStatus$/,
  cel: /^CheckedExpr$/,
}

function agrees({ form, type }: { form: string; type: string | undefined }): boolean {
  return wanted[form]?.test(type ?? '') ?? false
}

describe('a spec', () => {
  const cases: [string, unknown][] = [
    ['HostnameStatuses.net.talos.dev', { hostname: 'a', domainname: 'b.c' }],
    ['NodeAddresses.net.talos.dev', { addresses: ['10.0.0.1/24', 'fd00::1/64'], sortAlgorithm: 'v2' }],
    [
      'ApiCertificates.secrets.talos.dev',
      {
        acceptedCAs: [{ crt: 'YWJj' }],
        client: { crt: 'YQ==', key: 'Yg==' },
        server: { crt: 'Yw==', key: 'ZA==' },
        skipVerifyingClientCert: true,
      },
    ],
    ['MachineConfigs.config.talos.dev', 'version: v1alpha1\nmachine: {}\n'],
    ['MachineTypes.config.talos.dev', 'controlplane'],
    ['StaticPods.kubernetes.talos.dev', { kind: 'Pod', metadata: { name: 'x' }, spec: { n: 1, list: [true, null, 'x'] } }],
    ['Manifests.kubernetes.talos.dev', [{ kind: 'A' }, { kind: 'B', n: 2 }]],
    [
      'DiscoveryConfigs.cluster.talos.dev',
      { ...blank('DiscoveryConfigs.cluster.talos.dev'), serviceEncryptionKey: Buffer.from([1, 2, 3]) },
    ],
    ['TimeStatuses.v1alpha1.talos.dev', { synced: true, epoch: 3, syncDisabled: false }],
    [
      'AdjtimeStatuses.v1alpha1.talos.dev',
      { ...blank('AdjtimeStatuses.v1alpha1.talos.dev'), offset: '-1.5ms', frequencyAdjustmentRatio: 0.999 },
    ],
    ['KubeSpanEndpoints.kubespan.talos.dev', { affiliateID: 'x', endpoint: '[fd00::1]:51820' }],
    ['EtcdSpecs.etcd.talos.dev', { ...blank('EtcdSpecs.etcd.talos.dev'), extraArgs: { a: { values: ['1', '2'] } } }],
    ['KubernetesSecrets.secrets.talos.dev', blank('KubernetesSecrets.secrets.talos.dev')],
    ['KubeletLifecycles.kubernetes.talos.dev', {}],
    [
      'LinkSpecs.net.talos.dev',
      {
        ...blank('LinkSpecs.net.talos.dev'),
        name: 'bond0.1',
        masterName: 'bond0',
        slaveIndex: 2,
        hardwareAddr: '02:42:0a:05:00:02',
        type: 'ether',
        vlan: { vlanID: 1, vlanProtocol: '802.1q' },
        layer: 'configuration',
        multicast: false,
      },
    ],
    ['LinkStatuses.net.talos.dev', { ...blank('LinkStatuses.net.talos.dev'), flags: 'UP,RUNNING', hardwareAddr: '02:42:0a:05:00:02' }],
    ['RouteStatuses.net.talos.dev', { ...blank('RouteStatuses.net.talos.dev'), table: '100', gateway: '10.0.0.1', dst: '10.0.0.0/8' }],
  ]

  function blank(type: string): Record<string, unknown> {
    return decodeSpec(type, new Uint8Array()) as Record<string, unknown>
  }

  for (const [type, spec] of cases) {
    test(`of ${type} round-trips`, () => {
      expect(decodeSpec(type, encodeSpec(type, spec))).toEqual(spec)
    })
  }

  test('of every type has an empty form that can be written as YAML', () => {
    for (const type of new Set(table.map(([name]) => name!))) {
      const spec = decodeSpec(type, new Uint8Array())
      expect(encodeSpec(type, spec)).toBeInstanceOf(Buffer)
      expect(specYaml(type, spec)).toBeString()
    }
  })

  test('of any bytes decodes or throws a ProtoError, nothing else', () => {
    const types = [...new Set(table.map(([name]) => name!))]
    fc.assert(
      fc.property(fc.constantFrom(...types), fc.uint8Array({ maxLength: 120 }), (type, bytes) => {
        try {
          decodeSpec(type, bytes)
        } catch (error) {
          expect(error).toBeInstanceOf(ProtoError)
        }
      }),
      { numRuns: runs(5000) },
    )
  })

  test('of unknown bytes is refused with the offset', () => {
    expect(() => decodeSpec('HostnameStatuses.net.talos.dev', Buffer.from([0x0a, 0x05, 0x61]))).toThrow(
      'decode message: unexpected end of message',
    )
  })
})

describe('the YAML of a spec', () => {
  test('has the keys in order, empty ones as the reference shows them', () => {
    const spec = { image: 'etcd', extraArgs: {}, advertiseExcludeSubnets: [], listenExcludeSubnets: [] }
    expect(specYaml('EtcdConfigs.etcd.talos.dev', spec)).toBe(
      'advertiseExcludeSubnets: []\nlistenExcludeSubnets: []\nimage: etcd\nextraArgs: {}\n',
    )
  })

  test('indents by four and quotes strings that would parse as another type', () => {
    const spec = { addresses: ['10.6.0.2'], hostname: '', nodeId: '1e3', machineType: 'worker', operatingSystem: '7' }
    expect(specYaml('Members.cluster.talos.dev', spec)).toBe(
      'nodeId: "1e3"\naddresses:\n    - 10.6.0.2\nhostname: ""\nmachineType: worker\noperatingSystem: "7"\n',
    )
  })

  test('shows bytes as a list of numbers and multi-line strings as blocks', () => {
    expect(specYaml('EncryptionSalts.secrets.talos.dev', { diskSalt: Buffer.from([1, 2]) })).toBe('diskSalt:\n    - 1\n    - 2\n')
    expect(specYaml('MachineConfigs.config.talos.dev', 'a: 1\nb: 2\n')).toBe('|\n    a: 1\n    b: 2\n')
  })
})
