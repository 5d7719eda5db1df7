/** Parsers of what came from elsewhere as a whole: file systems of sticks, answers of platforms, images, objects, keys. */
import { lines } from '../../src/kube/lines.ts'
import { parseRegistryPath } from '../../src/oci/image-cache.ts'
import { parseArchitecture, parseImageDocument } from '../../src/oci/image-document.ts'
import { registryOf } from '../../src/oci/registry.ts'
import { readAnnotations, writeAnnotations } from '../../src/os/cluster/discovery/annotations.ts'
import { readFirmwareTables } from '../../src/os/hardware/firmware.ts'
import { platforms } from '../../src/os/network/platform/platforms.ts'
import { newKey, parseKey } from '../../src/pki/key.ts'
import { namesOfOthers } from '../../src/programs/trustd/claims.ts'
import { decodeSpec, encodeSpec } from '../../src/rpc/resource-codec.ts'
import { readStruct, writeStruct } from '../../src/rpc/struct.ts'
import { Reader, Writer } from '../../src/rpc/wire.ts'
import { formatFat } from '../../src/wire/fat/format.ts'
import { FatVolume } from '../../src/wire/fat/volume.ts'
import { splitHostPort } from '../../src/wire/host-port.ts'
import { platformIn, type Recording, recordings } from '../os/network/platform/recordings.ts'
import { memoryDisk } from '../support/memory-disk.ts'
import { bytes, type Target } from './target.ts'

const utf8 = (input: Uint8Array) => Buffer.from(input).toString('utf8')

interface Place {
  readonly name: string
  readonly each: Recording
  /** A URL, a key of the hypervisor or a file of a disk. */
  readonly place: string
  readonly text: string
}

/** The replies of a platform, with another text in one place; `heard` is called with every place. */
function transportOf(
  { name, each }: Pick<Place, 'name' | 'each'>,
  other: { place?: string; text: string },
  heard: (place: Place) => void = () => {},
) {
  const at = (place: string, text: string | undefined) => {
    if (text !== undefined) heard({ name, each, place, text })
    return place === other.place ? other.text : text
  }
  const read = (files: Readonly<Record<string, string>> | undefined) =>
    files && new Map(Object.entries(files).map(([file, text]) => [file, at(file, text) ?? '']))
  return {
    links: [{ name: 'eth0', hardwareAddress: '02:00:00:00:00:01', index: 2, driver: 'virtio_net' }],
    serial: each.serial ?? '',
    commandLine: '',
    fetch: async (url: string, { method = 'GET', headers = {}, body = '' } = {}) => {
      const answer = each.answers?.[url]
      return at(url, typeof answer === 'function' ? answer({ method, headers, body }) : answer)
    },
    disk: async (labels: readonly string[]) => read(labels.map((label) => each.disks?.[label]).find(Boolean)),
    optical: async () => read(Object.values(each.optical ?? {})[0]),
    guestinfo: async (key: string) => at(key, each.guestinfo?.[key]),
  }
}

async function query(name: string, transport: ReturnType<typeof transportOf>): Promise<void> {
  const { network, userData } = platforms[platformIn(name)]!
  const outcomes = await Promise.allSettled([network(transport), userData(transport)])
  for (const outcome of outcomes) if (outcome.status === 'rejected') throw outcome.reason
}

/** Every place at which a platform is queried, with its reply there. */
const places: Place[] = []
for (const [name, each] of Object.entries(recordings))
  await query(
    name,
    transportOf({ name, each }, { text: '' }, (place) => places.push(place)),
  )

async function platform(input: Uint8Array): Promise<void> {
  const chosen = places[((input[0] ?? 0) * 256 + (input[1] ?? 0)) % places.length]!
  await query(chosen.name, transportOf(chosen, { place: chosen.place, text: utf8(input.subarray(2)) }))
}

/** The front of a small file system, with a directory and a file. */
async function fatImage(): Promise<Uint8Array> {
  const disk = memoryDisk(fatSize)
  await formatFat(disk, { label: 'STICK', serial: 7, sectorSize: 512, hidden: 0 })
  const volume = await FatVolume.open(disk)
  await volume.mkdirAll('/loader/entries')
  await volume.create('/loader/entries/a.conf', Buffer.from('title a\n'))
  return disk.bytes()
}
const fatSize = 34 << 20
const fat = await fatImage()
/** Where its boot sector, the front of its table and its directories lie; an input is these pieces, one behind the other. */
const fatPieces = [[0, 512], ...tablePlaces(fat)] as const

function tablePlaces(image: Uint8Array): [number, number][] {
  const view = new DataView(image.buffer, image.byteOffset)
  const [sector, reserved, tables, perTable] = [view.getUint16(11, true), view.getUint16(14, true), image[16]!, view.getUint32(36, true)]
  return [
    [reserved * sector, 64],
    [(reserved + tables * perTable) * sector, 1024],
  ]
}

/** A disk that holds an image but for the pieces that lie over it. */
function overlaid(image: Uint8Array, pieces: { offset: number; bytes: Uint8Array }[]) {
  const inside = (offset: number, length: number) => {
    if (offset < 0 || offset + length > image.length) throw new RangeError(`${offset} lies outside`)
  }
  return {
    size: image.length,
    async read(offset: number, length: number) {
      inside(offset, length)
      const found = image.slice(offset, offset + length)
      for (const piece of pieces) {
        const [from, to] = [Math.max(offset, piece.offset), Math.min(offset + length, piece.offset + piece.bytes.length)]
        if (from < to) found.set(piece.bytes.subarray(from - piece.offset, to - piece.offset), from - offset)
      }
      return found
    },
    async write(offset: number, bytes: Uint8Array) {
      inside(offset, bytes.length)
      pieces.push({ offset, bytes: Uint8Array.from(bytes) })
    },
    async flush() {},
  }
}

async function readFat(input: Uint8Array): Promise<void> {
  let at = 0
  const pieces = fatPieces.map(([offset, length]) => {
    at += length
    return { offset, bytes: input.subarray(at - length, at) }
  })
  const volume = await FatVolume.open(overlaid(fat, pieces))
  for (const { name, directory } of await volume.list('/')) if (!directory) await volume.read(`/${name}`, 1 << 20)
  await volume.list('/loader/entries')
  await volume.create('/new', Buffer.alloc(3000))
  await volume.remove('/new')
}

const struct = new Writer()
writeStruct(struct, { a: [1, 'x', null, true], b: { c: 1.5 } })

/** Kinds of resources whose messages have all the forms there are. */
const kinds = [
  'LinkSpecs.net.talos.dev',
  'MachineStatuses.runtime.talos.dev',
  'StaticPods.kubernetes.talos.dev',
  'KubeletConfigs.kubernetes.talos.dev',
]

const image = JSON.stringify({
  mediaType: 'application/vnd.oci.image.index.v1+json',
  manifests: [{ digest: `sha256:${'0'.repeat(64)}`, platform: { os: 'linux', architecture: 'amd64' } }],
})
const registry = registryOf({
  images: [
    {
      reference: 'registry.k8s.io/pause:3.10',
      digest: `sha256:${'1'.repeat(64)}`,
      mediaType: 'application/vnd.oci.image.manifest.v1+json',
      manifest: '{}',
      config: { digest: `sha256:${'2'.repeat(64)}`, text: '{}' },
      layers: [{ digest: `sha256:${'3'.repeat(64)}`, size: 1000, diffId: '', entries: [] }],
    },
  ],
} as unknown as Parameters<typeof registryOf>[0])

const affiliate = {
  nodeId: 'n',
  addresses: ['10.0.0.1'],
  kubespan: {
    publicKey: 'k',
    address: 'fd00::1',
    additionalAddresses: ['10.1.0.0/24'],
    endpoints: ['[fd00::2]:51820'],
    excludeAdvertisedNetworks: [],
  },
  controlPlane: { port: 6443 },
} as unknown as Parameters<typeof writeAnnotations>[0]

/** Parsers by name. */
export const originTargets: Record<string, Target> = {
  'answers of platforms': {
    seeds: places.map(({ text }, index) => bytes(index >> 8, index & 255, text)),
    answers: ['PlatformConfigError', 'Error'],
    run: platform,
  },
  'FAT file systems': {
    seeds: [bytes(...fatPieces.map(([offset, length]) => fat.subarray(offset, offset + length)))],
    answers: ['DecodeError', 'FatError'],
    run: readFat,
  },
  'manifests and indexes of images': {
    seeds: [Buffer.from(image)],
    answers: [],
    run: (input) => void parseImageDocument(utf8(input)),
  },
  'architectures in configurations of images': {
    seeds: [Buffer.from('{"architecture":"arm64","os":"linux"}')],
    answers: [],
    run: (input) => void parseArchitecture(utf8(input)),
  },
  'requests to the registry': {
    seeds: ['/v2/pause/manifests/3.10?ns=registry.k8s.io', `/v2/pause/blobs/sha256:${'3'.repeat(64)}\nbytes=10-20`, '/v2/'].map((text) =>
      Buffer.from(text),
    ),
    answers: [],
    run(input) {
      const [url = '', range = null] = utf8(input).split('\n')
      const found = parseRegistryPath(url)
      if (found && `${found.domain}/${found.repository}/${found.reference}`.includes('..'))
        throw new Error(`leads out: ${JSON.stringify(found)}`)
      const { body } = registry.answer({ method: 'GET', url, headers: { get: () => range } })
      if (body && 'start' in body && (body.start < 0 || body.start + body.length > 1000))
        throw new Error(`outside: ${JSON.stringify(body)}`)
    },
  },
  'lines of streams': {
    seeds: [Buffer.from('{"type":"ADDED","object":{}}\n{"type":"BOOKMARK"}\n')],
    answers: ['KubeError'],
    async run(input) {
      const pieces = (async function* () {
        for (let at = 0; at < input.length; at += 13) yield input.subarray(at, at + 13)
      })()
      let length = 0
      for await (const line of lines(pieces)) length += line.length
      if (length > input.length) throw new Error(`${length} characters were read of ${input.length} bytes`)
    },
  },
  'annotations of nodes': {
    seeds: [Buffer.from(JSON.stringify({ metadata: { name: 'a', annotations: writeAnnotations(affiliate), labels: {} }, status: {} }))],
    answers: ['SyntaxError'],
    run(input) {
      const given = JSON.parse(utf8(input)) as { metadata?: { annotations?: object; labels?: object } } | null
      const annotations = Object.fromEntries(Object.entries(given?.metadata?.annotations ?? {}).map(([key, value]) => [key, String(value)]))
      readAnnotations({ apiVersion: 'v1', kind: 'Node', metadata: { name: 'a', annotations, labels: {} } } as never)
    },
  },
  'specs of resources': {
    seeds: kinds.map((kind, index) => bytes(index, encodeSpec(kind, decodeSpec(kind, new Uint8Array())))),
    answers: ['ProtoError'],
    run: (input) => void decodeSpec(kinds[(input[0] ?? 0) % kinds.length]!, input.subarray(1)),
  },
  'objects in messages': {
    seeds: [struct.finish()],
    answers: ['ProtoError'],
    run: (input) => void readStruct(new Reader(input)),
  },
  'tables of the firmware': {
    seeds: [
      bytes(
        1,
        27,
        0,
        0,
        1,
        2,
        3,
        4,
        Buffer.alloc(16, 1),
        6,
        5,
        6,
        'maker\0product\0v\0s\0sku\0family\0\0',
        17,
        21,
        1,
        0,
        Buffer.alloc(17),
        '\0\0',
        127,
        4,
        0,
        0,
        0,
        0,
      ),
    ],
    answers: ['DecodeError'],
    run: (input) => void readFirmwareTables(input),
  },
  'private keys': {
    seeds: [Buffer.from(newKey('ed25519').pem), Buffer.from(newKey('ecdsa').pem)],
    answers: ['DecodeError'],
    run: (input) => void parseKey(utf8(input)),
  },
  'names of queries': {
    seeds: ['node-1\n10.0.0.5\n*.example.org', 'fd00::1%eth0\n::ffff:10.0.0.1'].map((text) => Buffer.from(text)),
    answers: [],
    run(input) {
      const [commonName = '', ...names] = utf8(input).split('\n')
      const members = [{ hostname: 'node-1', nodename: 'node-1.example.org', addresses: ['10.0.0.5', 'fd00::1'], controlPlane: true }]
      namesOfOthers({ commonName, dns: names, ips: names }, names[0] ?? '', members, { dns: names, ips: names })
      splitHostPort(commonName, 50_000)
    },
  },
}
