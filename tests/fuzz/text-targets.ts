/** Parsers of texts that others wrote: configurations, manifests, metadata of platforms, expressions, names. */
import { zstdCompressSync } from 'node:zlib'
import { CelEnvironment } from '../../src/document/cel/environment.ts'
import { parseSchedule } from '../../src/document/cron.ts'
import { parsePatch } from '../../src/document/patch/patch.ts'
import { parseByteSize } from '../../src/document/quantity.ts'
import { parseManifest as parseObjects } from '../../src/kube/object.ts'
import { formatManifest, parseManifest } from '../../src/oci/image-manifest.ts'
import { parseVex, vexContext } from '../../src/oci/openvex.ts'
import { parsePackageUrl } from '../../src/oci/package-url.ts'
import { parseReference } from '../../src/oci/reference.ts'
import { parseGroup } from '../../src/os/block/groups/lvm.ts'
import { readAffiliate, writeAffiliate } from '../../src/os/cluster/discovery/record.ts'
import { seal } from '../../src/os/cluster/discovery/sealed.ts'
import { ConfigContainer } from '../../src/os/config/container.ts'
import { decodeInline } from '../../src/os/config/sources/inline.ts'
import { formatEntry, formatEntryName, parseEntry, parseEntryName } from '../../src/os/lifecycle/slots/boot-entry.ts'
import { parseSlotConfig, slotConfig } from '../../src/os/lifecycle/slots/grub-config.ts'
import { environmentSize, formatEnvironment, parseEnvironment } from '../../src/os/lifecycle/slots/grub-environment.ts'
import { readJson, unwrapped } from '../../src/os/network/platform/loose.ts'
import { readPlatformConfig } from '../../src/os/network/platform/platform-config.ts'
import { readNetworkConfig } from '../../src/os/network/platform/providers/nocloud.ts'
import { readContext } from '../../src/os/network/platform/providers/opennebula.ts'
import { readNetworkData } from '../../src/os/network/platform/providers/openstack.ts'
import { readOvfEnvironment } from '../../src/os/network/platform/providers/vmware.ts'
import { parseEnvironmentFile, parseExtensionService } from '../../src/os/runtime/extensions/service-spec.ts'
import { parseApiUrl } from '../../src/os/siderolink/api-url.ts'
import { parseTraceParent } from '../../src/os/telemetry/traces/span.ts'
import { parseHeader } from '../../src/wire/age/header.ts'
import { parseIdentityFile, parseRecipient } from '../../src/wire/age/keys.ts'
import { parseCommandLine } from '../../src/wire/command-line.ts'
import { parseDuration } from '../../src/wire/duration.ts'
import { formatExecReport, parseExecReports } from '../../src/wire/exec-report.ts'
import { hostPortOfUrl, parseHostPort, parseIpPort } from '../../src/wire/host-port.ts'
import { parseRequestHead } from '../../src/wire/http/request-head.ts'
import { parseIp, parseMac } from '../../src/wire/ip.ts'
import { parseKmsEndpoint } from '../../src/wire/luks2/kms-endpoint.ts'
import { parseRecoveryKey } from '../../src/wire/luks2/recovery-key.ts'
import { moduleOrder, parseModulesDep } from '../../src/wire/modules-dep.ts'
import { packetFilter } from '../../src/wire/packet/filter.ts'
import { tryPrefix } from '../../src/wire/prefix.ts'
import { parseKernelRecord } from '../../src/wire/proc/kmsg.ts'
import { parseProcessStat } from '../../src/wire/proc/process.ts'
import { parseS3Error, parseS3Page } from '../../src/wire/s3/listing.ts'
import { matchesWildcard } from '../../src/wire/wildcard.ts'
import type { Target } from './target.ts'

const interfaces = [{ name: 'eth0', hardwareAddress: '02:00:00:00:00:01', index: 2, driver: 'virtio_net' }]
const expressions = new CelEnvironment({
  variables: { disk: { size: 'uint', model: 'string', links: 'list<string>' }, system_disk: 'bool', c: 'int' },
  constants: { GB: 10n ** 9n },
})
const clusterKey = Buffer.alloc(32, 7)
const affiliate = {
  nodeId: 'node',
  addresses: ['10.0.0.1'],
  hostname: 'a',
  nodename: 'a',
  operatingSystem: 'Ichor',
  machineType: 'worker',
} as unknown as Parameters<typeof writeAffiliate>[1]

/** The first byte of an encoded record, that of its first field. A record that begins with it is sealed by the target below. */
const plainRecord = 0x0a

/** A sealed record that does not begin as a plain one. */
function sealedAffiliate(): Buffer {
  for (;;) {
    const record = writeAffiliate(clusterKey, affiliate)
    if (record[0] !== plainRecord) return record
  }
}

const slot = { version: 'v1.13.100', rootHash: '0'.repeat(64), image: '0'.repeat(16) }

const ageIdentity = 'AGE-SECRET-KEY-1N9JEPW6DWJ0ZQUDX63F5A03GX8QUW7PXDE39N8UYF82VZ9PC8UFS3M7XA9'
const ageRecipient = 'age1lvyvwawkr0mcnnnncaghunadrqkmuf9e6507x9y920xxpp866cnql7dp2z'
const ageHeader = `age-encryption.org/v1\n-> X25519 ${'A'.repeat(43)}\n${'A'.repeat(43)}\n-> grease\n${'A'.repeat(64)}\n\n--- ${'A'.repeat(43)}\n`

/** A parser that refuses by giving nothing did so. */
class Nothing extends Error {
  override name = 'Nothing'
}

/** A parser of text by what it gives, its seeds and its refusals. */
const texts = (seeds: readonly string[], answers: readonly string[], run: (text: string) => unknown): Target => ({
  seeds: seeds.map((seed) => Buffer.from(seed)),
  answers: [...answers, 'Nothing'],
  run(input) {
    const given = run(Buffer.from(input).toString('utf8'))
    if ([given].flat().every((each) => each === undefined)) throw new Nothing()
  },
})

/** Parsers by name. */
export const textTargets: Record<string, Target> = {
  'machine configurations': texts(
    [
      'version: v1alpha1\nmachine:\n  type: worker\n  sysctls: &a {x: "1"}\n  sysfs:\n    <<: *a\ncluster:\n  controlPlane: {endpoint: "https://a:6443"}\n',
      'apiVersion: v1alpha1\nkind: HostnameConfig\nhostname: a\n---\napiVersion: v1alpha1\nkind: WatchdogTimerConfig\ndevice: /dev/watchdog0\n',
    ],
    ['ConfigError'],
    (text) => ConfigContainer.parse(text).validate('metal'),
  ),
  'URLs of management servers': texts(['https://a:1/?jointoken=v2%3Ab%3D&grpc_tunnel=y', '[fd00::1]:4000'], ['DecodeError'], parseApiUrl),
  'patches of configurations': texts(
    ['- op: add\n  path: /machine/sysctls/x\n  value: "1"\n', '[{"op":"remove","path":"/a~1b/0"}]', 'machine:\n  $patch: delete\n'],
    ['ConfigError'],
    parsePatch,
  ),
  expressions: texts(
    [
      'disk.size > 10u * GB && !system_disk && has(disk.model)',
      'disk.model == r"x" || c in [1, 2] || 1.0 / 2.0 == 0.5',
      "matches(disk.model, '^x.*y$') ? disk.links.exists(l, l.startsWith('a')) : size(disk.links.map(l, l + l)) > 1",
    ],
    ['CelError'],
    (text) => expressions.condition(text)({ disk: { size: 1, model: 'x', links: ['a', 'b'] }, system_disk: true, c: 1 }),
  ),
  'services of extensions': texts(
    [
      'name: a\ncontainer:\n  entrypoint: /a\n  args: [b]\n  mounts:\n  - {source: /x, destination: /y, type: bind}\ndepends:\n- time: true\nrestart: always\n',
      'A=1\nexport B="two" # note\n',
    ],
    ['ServiceSpecError'],
    (text) => (text.startsWith('name') ? parseExtensionService(text) : parseEnvironmentFile(text)),
  ),
  quantities: texts(['1h30m', '1.5GiB', '100'], [], (text) => [parseByteSize(text), parseDuration(text)]),
  schedules: texts(['0 */6 * * 1-5', '@every 90m', '5,10-20/3 0 29 2 *'], [], (text) => parseSchedule(text)?.next(new Date(0))),
  'keys of age': texts([ageRecipient, `# created: today\n${ageIdentity}\n`], ['DecodeError'], (text) =>
    text.startsWith('age1') ? parseRecipient(text) : parseIdentityFile(text),
  ),
  'groups of LVM': texts(["LVM_VG_NAME_COMPLETE='data'\n", "LVM_VG_NAME_INCOMPLETE='a'"], ['DecodeError'], parseGroup),
  'headers of age': texts([ageHeader], ['DecodeError'], (text) => parseHeader(Buffer.from(text, 'latin1'))),
  'answers of S3 servers': texts(
    [
      '<ListBucketResult><Contents><Key>a%2Fb</Key><Size>1</Size></Contents><IsTruncated>true</IsTruncated><NextContinuationToken>x</NextContinuationToken></ListBucketResult>',
      '<Error><Code>AccessDenied</Code><Message>no &amp; never</Message></Error>',
    ],
    [],
    (text) => [parseS3Page(text), parseS3Error(text)],
  ),
  wildcards: texts(['sd*', '**/a?'], [], (text) => matchesWildcard(text.slice(0, 256), text)),
  'references of images': texts(
    ['registry.k8s.io/pause:3.10', `localhost:5000/a/b@sha256:${'0'.repeat(64)}`],
    ['ImageReferenceError'],
    parseReference,
  ),
  'package URLs': texts(['pkg:deb/debian/libc6@2.36-9%2Bdeb12u14?arch=amd64', 'pkg:npm/%40noble/ciphers#a'], [], parsePackageUrl),
  'statements on flaws': texts(
    [
      JSON.stringify({
        ...{ '@context': vexContext, '@id': 'https://example.org/1', author: 'a', timestamp: '2026-11-28T12:00:00Z', version: 1 },
        statements: [
          {
            ...{ vulnerability: { name: 'CVE-1' }, status: 'not_affected', justification: 'component_not_present' },
            products: [{ '@id': 'pkg:generic/a', hashes: { 'sha-256': 'ab' }, subcomponents: [{ '@id': 'pkg:deb/debian/mount' }] }],
          },
          {
            vulnerability: { name: 'CVE-2' },
            status: 'affected',
            action_statement: 'update',
            products: [{ identifiers: { purl: 'pkg:a/b' } }],
          },
        ],
      }),
    ],
    ['VexError'],
    parseVex,
  ),
  'manifests of releases': texts(
    [
      formatManifest({
        version: 'v1.13.100',
        arch: 'amd64',
        kubernetes: 'v1.36.0',
        kernel: '6.18.0',
        rootHash: '0'.repeat(64),
        files: [{ name: 'root.sqsh', size: 1, sha256: '0'.repeat(64) }],
      }),
    ],
    ['ManifestError'],
    parseManifest,
  ),
  'manifests of Kubernetes': texts(
    [
      'apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n',
      'apiVersion: v1\nkind: ConfigMap\nmetadata: &a {name: a}\ndata: {<<: *a}\n',
    ],
    ['KubeError'],
    (text) => parseObjects(text, 'a'),
  ),
  'kernel parameters': texts(['ro a="b c" -- x', 'talos.config=http://a/b?c=d'], [], parseCommandLine),
  'configurations in parameters': texts([zstdCompressSync('version: v1alpha1').toString('base64')], ['Error'], (text) =>
    decodeInline(text, 'talos.config.inline'),
  ),
  'records of the kernel log': texts(['6,1,2,-;text \\x20\n KEY=value\n'], [], parseKernelRecord),
  'states of processes': texts([`1 (a) b) S ${'0 '.repeat(50)}`], ['DecodeError'], parseProcessStat),
  'packet filters': texts(
    ['{ 0x28, 0, 0, 0x0000000c },\n{ 6, 0, 0, 0 }', '1\n6 0 0 0', 'tcp port 80 and not host 10.0.0.1'],
    ['FilterError'],
    packetFilter,
  ),
  'dependencies of modules': texts(['kernel/a.ko.xz: kernel/b.ko.xz\nkernel/b.ko.xz:\n'], ['DecodeError', 'ModuleOrderError'], (text) =>
    moduleOrder(parseModulesDep(text), ['a']),
  ),
  'reports of exec': texts([formatExecReport({ kind: 'failed', message: 'x', code: 1 })], [], parseExecReports),
  'names of boot entries': texts(
    [formatEntryName({ generation: 1, slot: 'a' }), formatEntryName({ generation: 20, slot: 'b', left: 2, done: 1 })],
    [],
    parseEntryName,
  ),
  'boot entries': texts([formatEntry({ ...slot, generation: 1, slot: 'a', kernel: '/a.efi' }, 'quiet')], [], (text) =>
    parseEntry('ichor-000001-a.conf', text),
  ),
  'slots of GRUB': texts([slotConfig('b', slot, 'console=ttyS0 quiet')], [], parseSlotConfig),
  'environments of GRUB': texts([Buffer.from(formatEnvironment(new Map([['good', 'a']]))).toString('latin1')], [], (text) =>
    parseEnvironment(Buffer.from(text.padEnd(environmentSize, '#').slice(0, environmentSize), 'latin1')),
  ),
  'metadata of platforms': texts(
    [
      '{"links":[{"id":"a","ethernet_mac_address":"02:00:00:00:00:01"}],"networks":[{"id":"n","link":"a","type":"ipv4","ip_address":"10.0.0.2","netmask":"255.0.0.0"}]}',
    ],
    ['PlatformConfigError'],
    (text) => readNetworkData(readJson(unwrapped(text), 'metadata'), interfaces),
  ),
  'network configurations of cloud-init': texts(
    [
      'version: 1\nconfig:\n- {type: physical, name: eth0, mac_address: "02:00:00:00:00:01", subnets: [{type: dhcp4}]}\n',
      'network:\n  version: 2\n  ethernets:\n    eth0: {match: {name: "e*"}, addresses: [10.0.0.2/24], routes: [{to: default, via: 10.0.0.1}]}\n',
    ],
    ['PlatformConfigError'],
    (text) => readNetworkConfig(text, interfaces),
  ),
  'OVF environments': texts(
    ['<Environment><PropertySection><Property oe:key="userdata" oe:value="a&amp;b"/></PropertySection></Environment>'],
    ['PlatformConfigError'],
    readOvfEnvironment,
  ),
  'contexts of OpenNebula': texts(['ETH0_IP=\'10.0.0.2\'\nETH0_DNS="1.1.1.1"\nNAME=a\n'], [], readContext),
  'platform configurations': texts(['addresses: []\nlinks: []\nhostnames: []\n'], ['PlatformConfigError'], (text) =>
    readPlatformConfig(text),
  ),
  'heads of requests': texts(
    ['GET /metrics HTTP/1.1\r\nHost: a:9100\r\nAccept: text/plain;q=0.5\r\nConnection: close', 'HEAD / HTTP/1.0'],
    ['DecodeError'],
    parseRequestHead,
  ),
  'parents of traces': texts([`00-${'1'.repeat(32)}-${'2'.repeat(16)}-01`], [], parseTraceParent),
  addresses: texts(['10.0.0.1', 'https://kms.example:4050', 'fd00::1', '10.0.0.0/8', '02:00:00:00:00:01', '::ffff:1.2.3.4'], [], (text) => [
    parseIp(text),
    tryPrefix(text),
    parseHostPort(text),
    parseIpPort(text),
    hostPortOfUrl(text),
    parseMac(text),
    parseKmsEndpoint(text),
  ]),
  'recovery keys': texts(['0123-4567-89AB-CDEF-GHJK-MNPQ-RSTV-WXYZ-53RD'], ['DecodeError'], parseRecoveryKey),
  'records of affiliates': {
    seeds: [sealedAffiliate()],
    answers: ['SealError'],
    run: (input) => void readAffiliate(clusterKey, input[0] === plainRecord ? seal(clusterKey, input) : input, [input]),
  },
}
