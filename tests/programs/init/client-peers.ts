/** Servers that the clients of init connect to, in a test. */
import { silent } from '../../../src/cosi/log.ts'
import { Store } from '../../../src/cosi/store.ts'
import { withLength } from '../../../src/os/network/dns/framing.ts'
import { discoveryMethods } from '../../../src/programs/discovery/methods.ts'
import { Registry } from '../../../src/programs/discovery/registry.ts'
import { bidi, serverStream, unary } from '../../../src/rpc/server/method.ts'
import { servePlain, serveTls } from '../../../src/rpc/server/server.ts'
import { ntpMode, readNtp, toNtpTime, writeNtp } from '../../../src/wire/ntp.ts'
import { authority, identityOf } from '../apid/nodes.ts'

/** Servers that answer, and one that never does. */
export interface Peers {
  /** Ports on the loopback, by name. */
  readonly ports: ReadonlyMap<string, number>
  close(): Promise<void>
}

/** A layer of an image, and its digest. */
export const content = Buffer.from('content of a layer')
export const digest = `sha256:${new Bun.CryptoHasher('sha256').update(content).digest('hex')}`

/** Starts them. */
export async function startPeers(): Promise<Peers> {
  const ports = new Map<string, number>()
  const http = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: answerHttp })
  ports.set('http', http.port!)
  const { certificate: cert, key } = identityOf('127.0.0.1', 'controlplane').server
  const tls = { cert, key, ca: authority.crt, clients: 'required' as const }
  const served = { methods: etcdMethods, store: new Store(), log: silent, roles: () => new Set(['os:admin'] as const) }
  const etcd = await serveTls({ port: 0, host: '127.0.0.1' }, tls, served)
  ports.set('etcd', etcd.port)
  const trust = await serveTls({ port: 0, host: '127.0.0.1' }, { cert, key }, { ...served, methods: trustdMethods })
  ports.set('trustd', trust.port)
  const discovery = await servePlain({ port: 0, host: '127.0.0.1' }, { ...served, methods: discoveryMethods(new Registry()) })
  ports.set('discovery', discovery.port)
  const time = await Bun.udpSocket({ hostname: '127.0.0.1', port: 0, socket: { data: answerTime } })
  ports.set('time', time.port)
  const dns = await answerNames()
  ports.set('dns', dns.port)
  const silentTime = await Bun.udpSocket({ hostname: '127.0.0.1', port: 0, socket: { data() {} } })
  ports.set('silent', silentTime.port)
  const closing = [
    () => http.stop(true),
    () => etcd.close(),
    () => trust.close(),
    () => discovery.close(),
    () => time.close(),
    () => silentTime.close(),
    () => dns.close(),
  ]
  return {
    ports,
    async close() {
      for (const close of closing) await close()
    },
  }
}

const admin = ['os:admin'] as const
const trustdMethods = [
  unary('securityapi.SecurityService/Certificate', 'anyone', ({ csr }) => ({
    ca: Buffer.alloc(0),
    crt: Buffer.from(`signed ${Buffer.from(csr)}`),
  })),
]
const etcdMethods = [
  unary('etcdserverpb.Cluster/MemberList', admin, () => ({ members: [{ ID: '1', name: 'one', peerURLs: [], clientURLs: [] }] })),
  unary('etcdserverpb.Lease/LeaseGrant', admin, () => ({ ID: '7', TTL: 8 })),
  unary('etcdserverpb.Lease/LeaseRevoke', admin, () => ({})),
  unary('etcdserverpb.KV/Txn', admin, () => ({ succeeded: true, header: { revision: 1 } })),
  unary('etcdserverpb.KV/Range', admin, () => ({ kvs: [] })),
  bidi('etcdserverpb.Lease/LeaseKeepAlive', admin, async function* (requests) {
    for await (const { ID } of requests) yield { ID, TTL: 8 }
  }),
  serverStream('etcdserverpb.Maintenance/Snapshot', admin, async function* () {
    for (let n = 0; n < 5; n++) yield { blob: Buffer.alloc(10_000) }
  }),
]

function answerHttp(request: Request): Response {
  const { pathname, searchParams, origin } = new URL(request.url)
  if (pathname === '/token') return Response.json({ token: 'known' })
  if (pathname.startsWith('/v2/') && request.headers.get('authorization') !== 'Bearer known')
    return new Response('', { status: 401, headers: { 'www-authenticate': `Bearer realm="${origin}/token",service="x"` } })
  if (pathname.startsWith('/v2/')) return new Response(content)
  if (searchParams.get('watch')) return new Response(`${JSON.stringify({ type: 'ADDED', object: { metadata: { name: 'a' } } })}\n`)
  if (pathname === '/text') return new Response('a text')
  return Response.json({ metadata: { name: 'x', resourceVersion: '7' }, items: [] })
}

function answerTime(socket: Bun.udp.Socket<'buffer'>, datagram: Buffer, port: number, address: string): void {
  const { transmitTime } = readNtp(datagram)
  const there = toNtpTime(BigInt(Date.now()) * 1_000_000n)
  socket.send(
    writeNtp({ mode: ntpMode.server, stratum: 2, originTime: transmitTime, receiveTime: there, transmitTime: there }),
    port,
    address,
  )
}

/** A name server at one port over UDP and TCP. */
async function answerNames(): Promise<{ port: number; close(): void }> {
  for (;;) {
    const udp = await Bun.udpSocket({
      hostname: '127.0.0.1',
      port: 0,
      socket: { data: (socket, requested, port, from) => void socket.send(truncatedAnswer(requested), port, from) },
    })
    try {
      const socket = { data: (client: Bun.Socket, requested: Buffer) => void client.write(withLength(answerTo(requested.subarray(2)))) }
      const tcp = Bun.listen({ hostname: '127.0.0.1', port: udp.port, socket })
      const close = () => {
        udp.close()
        tcp.stop(true)
      }
      return { port: udp.port, close }
    } catch {
      udp.close() // the port is in use over TCP
    }
  }
}

/** A query for the A record of example.com, and its answer. */
const question = Buffer.from(`${Buffer.from('example').toString('hex').replace(/^/, '07')}03636f6d0000010001`, 'hex')
export const query = Buffer.concat([Buffer.from('123401000001000000000000', 'hex'), question])
const record = Buffer.from('c00c000100010000003c00045db8d822', 'hex')
export function answerTo(requested: Uint8Array): Buffer {
  const head = Buffer.from('000081800001000100000000', 'hex')
  head.set(requested.subarray(0, 2))
  return Buffer.concat([head, requested.subarray(12), record])
}
/** The answer over UDP: too long, to be requested over TCP. */
function truncatedAnswer(requested: Uint8Array): Buffer {
  const head = Buffer.from('000083800001000000000000', 'hex')
  head.set(requested.subarray(0, 2))
  return Buffer.concat([head, requested.subarray(12)])
}
