/** Nodes for tests: a gateway on a loopback address with real certificates, before a real server on a unix socket. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { silent } from '../../../src/cosi/log.ts'
import { Store } from '../../../src/cosi/store.ts'
import { day, newCA, newCertificate, type PemPair } from '../../../src/pki/certificate.ts'
import { tlsKey } from '../../../src/pki/key.ts'
import { Gateway, type GatewayOptions } from '../../../src/programs/apid/gateway.ts'
import type { Identity } from '../../../src/programs/apid/identity.ts'
import { type Channel, connect } from '../../../src/rpc/client/channel.ts'
import { bidi, clientStream, type Method, readers, serverStream, unary } from '../../../src/rpc/server/method.ts'
import { serveUnix } from '../../../src/rpc/server/server.ts'
import { RpcError } from '../../../src/rpc/status.ts'

/** The authority of the cluster under test. */
export const authority = newCA({ subject: { organizations: ['talos'] }, kind: 'ed25519' })

/** A client's certificate with these roles. */
export function clientCertificate(
  roles: string[],
  options: { ca?: PemPair; usage?: ('clientAuth' | 'serverAuth')[]; now?: Date } = {},
): PemPair {
  const { ca = authority, usage = ['clientAuth'], now } = options
  return newCertificate({ ca, subject: { organizations: roles }, usage, lifetime: day, ...(now && { now }) })
}

/** What a node is to the world. */
export function identityOf(address: string, kind: 'controlplane' | 'worker' | 'maintenance'): Identity {
  const server = newCertificate({
    ca: authority,
    subject: { commonName: address },
    sans: { ips: [address] },
    usage: ['serverAuth'],
    lifetime: day,
  })
  const client = newCertificate({
    ca: authority,
    subject: { commonName: address, organizations: ['os:impersonator'] },
    usage: ['clientAuth'],
    lifetime: day,
  })
  return {
    server: { certificate: server.crt, key: tlsKey(server.key) },
    ...(kind === 'controlplane' && { client: { certificate: client.crt, key: tlsKey(client.key) } }),
    authorities: authority.crt,
    maintenance: kind === 'maintenance',
    host: '',
    own: new Set([address, `name-of-${address.replaceAll('.', '-')}`]),
  }
}

/** A node that listens. */
export interface Node {
  readonly gateway: Gateway
  readonly address: string
  readonly port: number
  /** What its backend saw of the last call. */
  readonly seen: { roles: string[]; metadata: Record<string, readonly string[]>; sent: number }
  /** Lines of its access log. */
  readonly access: string[]
  channel(certificate: PemPair | undefined, options?: { authority?: string; serverName?: string }): Channel
  close(): Promise<void>
}

function methods(address: string, seen: Node['seen']): Method[] {
  return [
    unary('machine.MachineService/Hostname', readers, (_, { roles, metadata }) => {
      seen.roles = [...roles]
      seen.metadata = metadata
      return { messages: [{ hostname: address }] }
    }),
    unary('machine.MachineService/Reboot', ['os:admin'], () => ({ messages: [{ actorId: address }] })),
    unary('machine.MachineService/Restart', readers, ({ id }) => {
      throw new RpcError('NotFound', `no container "${id}" on ${address}`)
    }),
    unary('machine.MachineService/Stats', readers, () => new Promise<never>(() => {})),
    unary('machine.MachineService/Memory', readers, () =>
      address === '127.0.0.2' ? new Promise<never>(() => {}) : { messages: [{ meminfo: { memtotal: 7 } }] },
    ),
    serverStream('machine.MachineService/Logs', readers, async function* ({ id }) {
      for (const part of ['one', 'two', 'three']) yield { bytes: Buffer.from(`${id} ${part} of ${address}`) }
      for (let n = 0; id === 'long' && n < 1000; n++) yield { bytes: Buffer.alloc(16_384) }
      if (id === 'broken') throw new RpcError('DataLoss', 'the log is broken')
    }),
    serverStream('machine.MachineService/Read', ['os:admin'], async function* () {
      const bytes = Buffer.alloc(65536)
      for (seen.sent = 0; seen.sent < 400; seen.sent++) yield { bytes }
    }),
    clientStream('machine.MachineService/EtcdRecover', ['os:admin'], async (requests) => {
      let size = 0
      for await (const { bytes } of requests) size += bytes.length
      return { messages: [{ metadata: { error: `${size} bytes` } }] }
    }),
    bidi('machine.DebugService/ContainerRun', ['os:admin'], async function* (requests) {
      for await (const { stdinData } of requests) yield { stdoutData: stdinData }
    }),
    serverStream('cosi.resource.State/List', readers, async function* () {
      yield {}
    }),
  ]
}

/** Starts a node; all of one test file share the port, as nodes do. */
export async function startNode(
  address: string,
  port: number,
  kind: 'controlplane' | 'worker' | 'maintenance' = 'controlplane',
  options: Partial<GatewayOptions> = {},
): Promise<Node> {
  const folder = mkdtempSync(join(tmpdir(), 'ichor-apid-'))
  const backend = join(folder, 'machine.sock')
  const seen: Node['seen'] = { roles: [], metadata: {}, sent: 0 }
  const server = await serveUnix({ path: backend }, { methods: methods(address, seen), store: new Store(), log: silent })
  const access: string[] = []
  const gateway = new Gateway({
    ...{ host: address, port, backend, remotePort: port, log: silent },
    access: (lines) => access.push(...lines.split('\n')),
    ...options,
  })
  await gateway.become(identityOf(address, kind))
  const channels: Channel[] = []
  return {
    gateway,
    address,
    port,
    seen,
    access,
    channel(certificate, { authority: ca = authority.crt, serverName } = {}) {
      const own = certificate && { cert: certificate.crt, key: tlsKey(certificate.key) }
      const channel = connect({ address: `${address}:${port}`, tls: { ca, ...own, ...(serverName && { serverName }) } })
      channels.push(channel)
      return channel
    },
    async close() {
      for (const channel of channels) channel.close()
      await gateway.close()
      await server.close()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** The status and message a call fails with. */
export async function failure(call: Promise<unknown>): Promise<[string, string] | string> {
  try {
    await call
    return 'no failure'
  } catch (error) {
    return error instanceof RpcError ? [error.status, error.message] : String(error)
  }
}
