/**
 * Every parser of data from the network or from external files: what it is fed with to begin with, how it is
 * run, and the errors it may end in. Anything else, and anything it holds beyond its bound, is a fault.
 */

import * as v from 'valibot'
import { Store } from '../../src/cosi/store.ts'
import { emptyKubeconfig, mergeKubeconfig, parseKubeconfig } from '../../src/kube/kubeconfig.ts'
import { markReply } from '../../src/programs/apid/merge.ts'
import { forwardedHeaders, routeOf } from '../../src/programs/apid/routing.ts'
import { parsePath, parseTemplate } from '../../src/programs/talosctl/output/jsonpath.ts'
import { parseTalosconfig } from '../../src/programs/talosctl/talosconfig/talosconfig.ts'
import { decode, encode } from '../../src/rpc/codec.ts'
import { FrameReader, parseTimeout, sealFrame, statusOf } from '../../src/rpc/frame.ts'
import { hardOutput } from '../../src/rpc/http2/limits.ts'
import type { Socket } from '../../src/rpc/http2/output.ts'
import { Session } from '../../src/rpc/http2/session.ts'
import type { Methods } from '../../src/rpc/messages.ts'
import { metadataOf } from '../../src/rpc/metadata.ts'
import { messageType, methodShape } from '../../src/rpc/schema.ts'
import { stateMethods } from '../../src/rpc/server/state.ts'
import { preface } from '../../src/wire/http2/frame.ts'
import { HpackDecoder, HpackEncoder } from '../../src/wire/http2/hpack.ts'
import { settingsFrame } from '../../src/wire/http2/settings.ts'
import { tarEntries } from '../../src/wire/tar/read.ts'
import { tarEnd } from '../../src/wire/tar/write.ts'
import { imageTargets } from './image-targets.ts'
import { kernelTargets } from './kernel-targets.ts'
import { originTargets } from './origin-targets.ts'
import { signatureTargets } from './signature-targets.ts'
import { bytes, type Target, tarOf } from './target.ts'
import { textTargets } from './text-targets.ts'
import { tpmTargets } from './tpm-targets.ts'
import { wireTargets } from './wire-targets.ts'
import { wireguardTargets } from './wireguard-targets.ts'

const text = (input: Uint8Array) => Buffer.from(input).toString('utf8')
/** A socket that swallows what is sent. */
function nowhere(): Socket & { sent: number } {
  const socket = {
    fd: -1,
    sent: 0,
    write(_: Uint8Array, __: number, length: number) {
      socket.sent += length
      return length
    },
    end() {},
    shutdown() {},
    terminate() {},
    pause() {},
    resume() {},
    ref() {},
    unref() {},
  }
  return socket
}

/** Frames after a greeting, in two pieces, to a server that answers requests. */
function serve(input: Uint8Array): void {
  const socket = nowhere()
  let open = 0
  const session = new Session(socket, {
    side: 'server',
    maxStreams: 20,
    request(stream, headers) {
      open++
      stream.whenClosed(() => open--)
      stream.read({ data: (piece) => stream.release(piece.length), end: () => stream.end(Buffer.from('x'), { 'grpc-status': 0 }) })
      stream.respond({ ':status': 200, back: headers[':path'] })
    },
  })
  session.receive(bytes(preface, settingsFrame({})))
  const half = input.length >> 1
  session.receive(Buffer.from(input.subarray(0, half)))
  session.receive(Buffer.from(input.subarray(half)))
  if (open > 20) throw new Error(`${open} streams are open, 20 are allowed`)
  if (socket.sent > hardOutput) throw new Error(`${input.length} bytes made us say ${socket.sent}`)
  session.destroy()
  if (open !== 0) throw new Error(`${open} streams are left`)
}

/** Frames of a server to a client with a call under way. */
function call(input: Uint8Array): void {
  const session = new Session(nowhere(), { side: 'client' })
  const stream = session.request({ ':method': 'POST', ':scheme': 'http', ':path': '/x', ':authority': 'x' })
  let ended = false
  stream.read({ headers: (headers) => void statusOf(headers), data: (piece) => stream.release(piece.length), end() {} })
  stream.whenClosed(() => {
    ended = true
  })
  stream.end(Buffer.from('request'))
  session.receive(settingsFrame({}))
  session.receive(Buffer.from(input))
  session.destroy()
  if (!ended) throw new Error('the call has not ended')
}

const frame = (type: number, flags: number, stream: number, payload: Uint8Array) =>
  bytes(payload.length >> 16, (payload.length >> 8) & 0xff, payload.length & 0xff, type, flags, 0, 0, 0, stream, payload)
const block = (headers: Record<string, string>) => Buffer.from(new HpackEncoder().encode(headers))
const request = block({
  ':method': 'POST',
  ':scheme': 'http',
  ':path': '/machine.MachineService/Version',
  ':authority': 'x',
  te: 'trailers',
})
const window = Buffer.from([0, 0, 1, 0])

const requests = [
  ...new Set([
    'machine.MachineService/Events',
    'machine.MachineService/Netstat',
    'cosi.resource.State/Watch',
    'machine.MachineService/ApplyConfiguration',
    'cluster.ClusterService/HealthCheck',
    'machine.DebugService/ContainerRun',
  ]),
] as (keyof Methods)[]

const store = new Store()
const kind = {
  type: 'Things.test',
  namespace: 'test',
  displayType: '',
  aliases: [],
  automaticAliases: false,
  initials: true,
  sensitive: false,
  columns: {},
  schema: v.unknown(),
}
store.register(kind)
for (const id of ['a', 'ab', 'x']) store.create(kind, id, { name: id }, { labels: { app: id } })
const [get, list, watch] = stateMethods(() => undefined, 'anyone')

async function query(input: Uint8Array): Promise<void> {
  const methods = [get!, list!, watch!]
  const method = methods[(input[0] ?? 0) % 3]!
  const context = { store, roles: new Set(), signal: AbortSignal.abort(), peer: '', client: {}, hold() {}, metadata: {} }
  const message = decode(methodShape(method.path).request, input.subarray(1)) as Record<string, unknown>
  const answer = method.handle({ ...message, type: kind.type, namespace: 'test' } as never, context as never)
  if (method === get) return
  let count = 0
  for await (const _ of answer as AsyncIterable<unknown>) if (++count > 10) break
}

const requestOf = (path: keyof Methods, message: object) => encode(methodShape(path).request, message)
const terms = [{ key: 'app', op: 1, value: ['x', 'y'], invert: false }]

const rpcTargets: Record<string, Target> = {
  'frames to a server': {
    seeds: [
      bytes(frame(1, 5, 1, request), frame(8, 0, 0, window)),
      bytes(frame(1, 4, 1, request), frame(0, 1, 1, sealFrame(Buffer.alloc(20))), frame(6, 0, 0, Buffer.alloc(8))),
      bytes(frame(1, 0, 1, request.subarray(0, 5)), frame(9, 4, 1, request.subarray(5)), frame(3, 0, 1, window)),
      bytes(
        frame(4, 0, 0, settingsFrame({ initialWindowSize: 5, maxFrameSize: 16_384, headerTableSize: 10 }).subarray(9)),
        frame(2, 0, 1, Buffer.alloc(5)),
        frame(7, 0, 0, Buffer.alloc(8)),
      ),
      bytes(frame(0, 8, 1, Buffer.from([3, 1, 2, 0, 0, 0]))),
    ],
    answers: [],
    run: serve,
  },
  'frames to a client': {
    seeds: [
      bytes(
        frame(1, 4, 1, block({ ':status': '200', 'content-type': 'application/grpc' })),
        frame(0, 0, 1, Buffer.alloc(30)),
        frame(1, 5, 1, block({ 'grpc-status': '0' })),
      ),
      bytes(frame(1, 5, 1, block({ ':status': '200', 'grpc-status': '5', 'grpc-message': 'not%20there' }))),
      bytes(frame(3, 0, 1, window), frame(7, 0, 0, Buffer.alloc(8))),
      bytes(frame(5, 4, 1, request)),
    ],
    answers: [],
    run: call,
  },
  'header blocks': {
    seeds: [request, block({ a: 'b'.repeat(300), token: 'secret' }), Buffer.from('3fe10182864188f439ce75c875fa5784', 'hex')],
    answers: ['ConnectionError'],
    run: (input) => new HpackDecoder().decode(Buffer.from(input), () => {}),
  },
  'messages in frames': {
    seeds: [sealFrame(Buffer.alloc(30, 1)), bytes(sealFrame(Buffer.alloc(7)), sealFrame(Buffer.alloc(5)))],
    answers: ['RpcError'],
    run(input) {
      const frames = new FrameReader(1000)
      for (let at = 0; at < input.length; at += 11) for (const _ of frames.push(Buffer.from(input.subarray(at, at + 11))));
      frames.end()
    },
  },
  messages: {
    seeds: requests.map((path, index) =>
      bytes(
        index,
        requestOf(path, { tailEvents: 3, tailId: 'x', id: 'y', spec: { imageName: 'z', env: { a: 'b' } }, data: Buffer.alloc(9) }),
      ),
    ),
    answers: ['ProtoError'],
    run: (input) => void decode(methodShape(requests[(input[0] ?? 0) % requests.length]!).request, input.subarray(1)),
  },
  'resource queries': {
    seeds: [
      bytes(0, requestOf('cosi.resource.State/Get', { id: 'x' })),
      bytes(1, requestOf('cosi.resource.State/List', { options: { labelQuery: [{ terms }], idQuery: { regexp: '^a.*b$' } } })),
      bytes(2, requestOf('cosi.resource.State/Watch', { apiVersion: 1, options: { bootstrapContents: true, labelQuery: [{ terms }] } })),
      bytes(2, requestOf('cosi.resource.State/Watch', { apiVersion: 1, options: { tailEvents: 5 } })),
    ],
    answers: ['ProtoError', 'RpcError', 'StoreError'],
    run: query,
  },
  'metadata of calls': {
    seeds: ['10.0.0.1', '::1', 'fd00::5'].map((value) => Buffer.from(value)),
    answers: ['RpcError'],
    run(input) {
      const value = Buffer.from(input).toString('latin1')
      const headers = {
        ':path': '/machine.MachineService/Version',
        node: value,
        'talos-role': value,
        'x-bin': value,
        'grpc-timeout': value,
      }
      parseTimeout(value)
      metadataOf(headers)
      const out = forwardedHeaders(headers, { roles: ['os:reader'], impersonator: false }, true)
      if (String(out['talos-role']) !== 'os:reader' || 'node' in out) throw new Error(`forwarded ${JSON.stringify(out)}`)
      routeOf(headers, { forwards: true, isOwn: () => false })
    },
  },
  'replies to be merged': {
    seeds: [encode(messageType('machine.VersionResponse'), { messages: [{ version: { tag: 'v1' } }] }), Buffer.from([0x0a, 0x00])],
    answers: ['ProtoError'],
    run: (input) => void markReply(input, 'node'),
  },
  jsonpath: {
    seeds: ['{.spec.hostname}', '{range .items[*]}{.a}{"\\n"}{end}', '{..a[0:2:1]}', "{.a['b','c']}", '{.x[?(@.y>3)].z}', '.a.b'].map(
      (path) => Buffer.from(path),
    ),
    answers: ['UsageError'],
    run(input) {
      const value = { spec: { hostname: 'x' }, items: [{ a: 1 }, { a: [2, 3] }], x: [{ y: 5, z: 'q' }] }
      const template = text(input)
      const wrong = [parseTemplate, parsePath].map((parse) => {
        try {
          parse(template)(value)
          return undefined
        } catch (error) {
          return error
        }
      })
      const refused = wrong.filter((error) => error !== undefined)
      for (const error of refused) if ((error as Error).name !== 'UsageError') throw error
      if (refused.length === wrong.length) throw refused[0]
    },
  },
  talosconfig: {
    seeds: [
      'context: a\ncontexts:\n  a:\n    endpoints: [10.0.0.1]\n    nodes: []\n    ca: eA==\n    crt: eA==\n    key: eA==\n',
      'context: ""\ncontexts: {}\n',
      'a: &x [1]\nb: *x\n',
    ].map((config) => Buffer.from(config)),
    answers: ['UsageError'],
    run: async (input) => void (await parseTalosconfig(text(input))),
  },
  kubeconfig: {
    seeds: [
      'apiVersion: v1\nkind: Config\nclusters:\n- name: a\n  cluster: {server: "https://x"}\nusers:\n- name: u\n  user: {}\ncontexts:\n- name: c\n  context: {cluster: a, user: u}\ncurrent-context: c\n',
      'kind: Config\n',
      'a: &x [*x]\n',
    ].map((config) => Buffer.from(config)),
    answers: ['KubeError'],
    run: (input) => void mergeKubeconfig(emptyKubeconfig(), parseKubeconfig(text(input))),
  },
  'tar streams': {
    seeds: [
      ['file', 'content of a file'],
      ['long/'.repeat(15), ''],
    ]
      .map(([name = '', content = '']) => bytes(tarOf(name, content), tarEnd))
      .concat(bytes(tarOf('a', 'b'), tarOf('c', 'd'), tarEnd)),
    answers: ['TarError'],
    async run(input) {
      const pieces = (async function* () {
        for (let at = 0; at < input.length; at += 700) yield input.subarray(at, at + 700)
      })()
      let read = 0
      for await (const { content } of tarEntries(pieces)) for await (const piece of content) read += piece.length
      if (read > input.length) throw new Error(`${read} bytes were read of ${input.length}`)
    },
  },
}

/** The parsers by name. */
export const targets: Record<string, Target> = {
  ...rpcTargets,
  ...wireTargets,
  ...imageTargets,
  ...wireguardTargets,
  ...textTargets,
  ...kernelTargets,
  ...originTargets,
  ...signatureTargets,
  ...tpmTargets,
}
