/** A machine at the other end of the wire: a real server over TLS that answers as a test specifies, and names its nodes as apid does. */

import { X509Certificate } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { silent } from '../../../src/cosi/log.ts'
import { Store } from '../../../src/cosi/store.ts'
import { newCA, newCertificate } from '../../../src/pki/certificate.ts'
import { tlsKey } from '../../../src/pki/key.ts'
import type { Io } from '../../../src/programs/talosctl/io.ts'
import { run } from '../../../src/programs/talosctl/talosctl.ts'
import { fingerprintOf } from '../../../src/rpc/client/dial.ts'
import { messageType, methodShape } from '../../../src/rpc/schema.ts'
import type { Context, Method } from '../../../src/rpc/server/method.ts'
import { serveTls } from '../../../src/rpc/server/server.ts'
import type { Role } from '../../../src/wire/x509/roles.ts'
import { brief } from './text-io.ts'

const ca = newCA({ subject: { organizations: ['talos'] } })
const server = newCertificate({
  ca,
  subject: { commonName: 'node' },
  sans: { ips: ['127.0.0.1'] },
  usage: ['serverAuth'],
  lifetime: 3600_000,
})
/** In its time by the clock of the tests as well as by the real one. */
const client = newCertificate({
  ca,
  subject: { organizations: ['os:admin'] },
  usage: ['clientAuth'],
  now: new Date('2026-11-21T00:00:00Z'),
  lifetime: 10 * 365 * 86_400_000,
})

/** The name of the one node, as the recorded outputs have it. */
export const node = '10.6.0.2'
/** The moment at which the recorded outputs were made, by the clock of the tests. */
export const recordedAt = new Date('2026-11-21T09:52:04Z')

/** The fingerprint of the machine's certificate. */
export const fingerprint = fingerprintOf(new X509Certificate(server.crt).raw)

/** What a command wrote and how it ended. */
export interface Outcome {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

/** An Io made of strings. */
export function textIo(
  options: {
    env?: Record<string, string>
    signal?: AbortSignal
    stdin?: string
    now?: Date
    seen?: (stdout: string) => void
    longestPause?: number
  } = {},
): Io & Record<'written', { out: string; err: string; bytes: Uint8Array[] }> {
  const written = { out: '', err: '', bytes: [] as Uint8Array[] }
  const output = (write: (text: string | Uint8Array) => void) => ({
    write,
    drained: async () => {},
    isTTY: false,
    colors: false,
    columns: 120,
  })
  return {
    written,
    stdout: output((text) => {
      written.out += typeof text === 'string' ? text : Buffer.from(text).toString('utf8')
      if (typeof text !== 'string') written.bytes.push(text)
      options.seen?.(written.out)
    }),
    stderr: output((text) => {
      written.err += text
    }),
    env: options.env ?? {},
    signal: options.signal ?? new AbortController().signal,
    interactive: false,
    now: () => options.now ?? recordedAt,
    pause: (milliseconds) => brief(milliseconds, options.longestPause),
    ask: async () => '',
    askSecret: async () => '',
    readStdin: async () => Buffer.from(options.stdin ?? ''),
  }
}

type Message = Record<string, unknown>

/**
 * A method behind apid: what it answers is the answer of each node that the call names, and names that node in its metadata. A message
 * that has metadata of its own is left as it is: it is one node's, for tests in which nodes answer differently.
 */
function behindGateway(method: Method): Method {
  const { reply } = methodShape(method.path)
  const marked = (type: string) =>
    messageType(type).fields.some(({ name, id, type }) => name === 'metadata' && id === 1 && type === 'common.Metadata')
  const of = (nodes: readonly string[], message: Message): Message[] =>
    message.metadata || nodes.length === 0 ? [message] : nodes.map((hostname) => ({ ...message, metadata: { hostname } }))
  const call = (request: unknown, context: Context) => method.handle(request as never, context)
  const part = reply.fields.find(({ name }) => name === 'messages')
  if (method.kind === 'unary' && part && marked(part.type))
    return {
      ...method,
      async handle(request, context) {
        const { messages = [], ...rest } = (await call(request, context)) as { messages?: Message[] }
        return { ...rest, messages: messages.flatMap((message) => of(context.metadata.nodes ?? [], message)) }
      },
    }
  if (method.kind === 'server' && marked(reply.name))
    return {
      ...method,
      async *handle(request: unknown, context: Context) {
        for await (const message of call(request, context) as AsyncIterable<Message>) yield* of(context.metadata.nodes ?? [], message)
      },
    }
  return method
}

/** Runs one command line against a machine with these methods, as a caller with these roles. */
export async function talosctl(
  methods: readonly Method[],
  args: readonly string[],
  options: {
    store?: Store
    nodes?: string[]
    endpoints?: string[]
    signal?: AbortSignal
    stdin?: string
    seen?: (stdout: string) => void
    /** The roles of the caller's certificate; by default those of an administrator. */
    roles?: readonly Role[]
    /** The machine requires no certificates. */
    maintenance?: boolean
    env?: Record<string, string>
    now?: Date
    /** Milliseconds between two looks. */
    longestPause?: number
  } = {},
): Promise<Outcome> {
  const tls = {
    ca: ca.crt,
    cert: server.crt,
    key: tlsKey(server.key),
    clients: options.maintenance ? undefined : ('required' as const),
  }
  const open = await serveTls({ port: 0, host: '127.0.0.1' }, tls, {
    methods: methods.map(behindGateway),
    store: options.store ?? new Store(),
    log: silent,
    roles: () => new Set(options.roles ?? ['os:admin']),
  })
  const folder = mkdtempSync(join(tmpdir(), 'ichor-talosctl-'))
  try {
    const talosconfig = join(folder, 'config')
    const here = `127.0.0.1:${open.port}`
    writeFileSync(
      talosconfig,
      talosconfigText(options.endpoints?.map((one) => one.replace('HERE', here)) ?? [here], options.nodes ?? [node]),
    )
    const io = textIo({ ...options, env: { TALOSCONFIG: talosconfig, HOME: folder, ...options.env } })
    const code = await run(
      args.map((arg) => arg.replace('HERE', here)),
      io,
    )
    return { code, stdout: io.written.out, stderr: io.written.err }
  } finally {
    await open.close(0)
    rmSync(folder, { recursive: true })
  }
}

/** A client configuration with one context. */
export function talosconfigText(endpoints: readonly string[], nodes: readonly string[]): string {
  const base64 = (pem: string) => Buffer.from(pem).toString('base64')
  const context = { endpoints, nodes, ca: base64(ca.crt), crt: base64(client.crt), key: base64(tlsKey(client.key) as string) }
  return JSON.stringify({ context: 'test', contexts: { test: context } })
}

/** A recorded command and what it wrote. */
export function transcript(name: string): Outcome & { args: string[] } {
  const lines = readFileSync(join(import.meta.dir, '../../transcripts/talosctl', `${name}.txt`), 'utf8').split('\n')
  const [first = '', ...rest] = lines
  const end = rest.findLastIndex((line) => line.startsWith('[rc '))
  const body = rest.filter((_, index) => index !== end)
  const stderr = body.filter((line) => line.startsWith('stderr:')).map((line) => `${line.slice('stderr: '.length)}\n`)
  const stdout = body.filter((line) => !line.startsWith('stderr:'))
  return {
    args: first.replace(/^\$ talosctl /, '').split(' '),
    code: Number(/\d+/.exec(rest[end] ?? '')?.[0]),
    stdout: stdout.join('\n'),
    stderr: stderr.join(''),
  }
}
