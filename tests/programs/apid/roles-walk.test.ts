/**
 * Every method of the machine API behind a real apid, by callers of every kind, while the machine is configured and while
 * it waits for its configuration. What must be open is in one table, rights.tsv; everything else must be refused.
 */

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { silent } from '../../../src/cosi/log.ts'
import { Store } from '../../../src/cosi/store.ts'
import { day, newCA, newCertificate, type PemPair } from '../../../src/pki/certificate.ts'
import { tlsKey } from '../../../src/pki/key.ts'
import { Gateway } from '../../../src/programs/apid/gateway.ts'
import { type Channel, connect } from '../../../src/rpc/client/channel.ts'
import type { Method } from '../../../src/rpc/server/method.ts'
import { type Server, serveUnix } from '../../../src/rpc/server/server.ts'
import { RpcError } from '../../../src/rpc/status.ts'
import { allRoles, type Role } from '../../../src/wire/x509/roles.ts'
import { servedMethods } from '../../os/served-methods.ts'
import { freePort } from '../../support/free-port.ts'
import { authority, clientCertificate, failure, identityOf } from './nodes.ts'

interface Right {
  readonly path: Method['path']
  readonly kind: Method['kind']
  /** The roles that open it always. */
  readonly roles: readonly Role[]
  /** Whether anybody may call it while the machine waits for its configuration. */
  readonly maintenance: boolean
}

const table: Right[] = (await Bun.file(`${import.meta.dir}/rights.tsv`).text())
  .trim()
  .split('\n')
  .slice(1)
  .map((line) => {
    const [path, kind, roles = '', maintenance] = line.split('\t')
    return { path, kind, roles: roles.split(','), maintenance: maintenance === 'yes' } as unknown as Right
  })

/** How a call ends that was let in. */
const inside = 'Aborted: you are in'
const refused = 'PermissionDenied: not authorized'

const folder = mkdtempSync(join(tmpdir(), 'ichor-roles-'))
const channels: Channel[] = []
const machine = { waits: false }
const gateways = {} as Record<'configured' | 'maintenance', { gateway: Gateway; port: number }>
let backend: Server

beforeAll(async () => {
  const enter = () => {
    throw new RpcError('Aborted', 'you are in')
  }
  // The access of each method is what its area declares; only what it would do is left out.
  const methods = servedMethods('metal').map((method) => ({ ...method, handle: enter }))
  const socket = join(folder, 'machine.sock')
  backend = await serveUnix({ path: socket }, { methods, store: new Store(), log: silent, inMaintenance: () => machine.waits })
  for (const state of ['configured', 'maintenance'] as const) {
    const port = await freePort()
    const gateway = new Gateway({ host: '127.0.0.1', port, backend: socket, remotePort: port, log: silent })
    await gateway.become(identityOf('127.0.0.1', state === 'maintenance' ? 'maintenance' : 'controlplane'))
    gateways[state] = { gateway, port }
  }
})
afterAll(async () => {
  for (const channel of channels) channel.close()
  for (const { gateway } of Object.values(gateways)) await gateway.close()
  await backend.close()
  rmSync(folder, { recursive: true, force: true })
})

function channelOf(pair: PemPair | undefined, state: keyof typeof gateways = 'configured'): Channel {
  const own = pair && { cert: pair.crt, key: tlsKey(pair.key) }
  const channel = connect({ address: `127.0.0.1:${gateways[state].port}`, tls: { ca: authority.crt, ...own } })
  channels.push(channel)
  return channel
}

/** How a call of a method ends, whatever its kind. */
async function outcome(channel: Channel, { path, kind }: Right, metadata: Record<string, string | string[]> = {}): Promise<string> {
  const options = { metadata, deadline: 20_000 }
  const call = async () => {
    if (kind === 'unary') await channel.unary(path as never, {} as never, options)
    else if (kind === 'client') await channel.clientStream(path as never, [] as never, options)
    else
      for await (const _ of kind === 'server'
        ? channel.serverStream(path as never, {} as never, options)
        : channel.bidi(path as never, [] as never, options));
  }
  const ended = await failure(call())
  return typeof ended === 'string' ? ended : `${ended[0]}: ${ended[1]}`
}

/** What the table grants to callers with these roles. */
function expected(right: Right, roles: readonly Role[]): string {
  const may = right.roles.some((role) => roles.includes(role)) || (machine.waits && right.maintenance && roles.includes('os:reader'))
  return may ? inside : refused
}

/** Calls every method and compares with the table. */
async function walk(channel: Channel, roles: readonly Role[], metadata: Record<string, string[]> = {}): Promise<void> {
  const seen = await Promise.all(table.map((right) => outcome(channel, right, metadata)))
  expect(table.map(({ path }, at) => `${path} ${seen[at]}`)).toEqual(table.map((right) => `${right.path} ${expected(right, roles)}`))
}

const past = new Date(Date.now() - 3 * 86_400_000)
const future = new Date(Date.now() + 3 * 86_400_000)
const twin = newCA({ subject: { organizations: ['talos'] }, kind: 'ed25519' })

/** Certificates that open nothing, whatever roles they name. */
const bad: Record<string, (roles: string[]) => PemPair | undefined> = {
  'no certificate': () => undefined,
  'an expired certificate': (roles) => clientCertificate(roles, { now: past }),
  'a certificate that is not valid yet': (roles) => clientCertificate(roles, { now: future }),
  'a certificate of another authority with the same subject': (roles) => clientCertificate(roles, { ca: twin }),
  'a certificate for servers': (roles) => clientCertificate(roles, { usage: ['serverAuth'] }),
  'a certificate for servers and clients': (roles) => clientCertificate(roles, { usage: ['clientAuth', 'serverAuth'] }),
}

test('the table names every method that machines serve, and none is for everybody once they are configured', () => {
  expect(table.map(({ path, kind }) => `${path} ${kind}`)).toEqual(
    servedMethods('metal')
      .map(({ path, kind }) => `${path} ${kind}`)
      .sort(),
  )
  expect(table.filter(({ roles }) => roles.length === 0)).toEqual([])
})

/** What another implementation of TLS hears of apid with a certificate of this role. */
async function heard(state: keyof typeof gateways, role: Role): Promise<string> {
  const { crt, key } = clientCertificate([role])
  const [cert, own] = [join(folder, `${role}.crt`), join(folder, `${role}.key`)]
  await Bun.write(cert, crt)
  await Bun.write(own, tlsKey(key))
  const place = `127.0.0.1:${gateways[state].port}`
  const child = Bun.spawn(['openssl', 's_client', '-connect', place, '-alpn', 'h2', '-tls1_3', '-msg', '-cert', cert, '-key', own], {
    stdin: Buffer.from('GET / HTTP/1.1\r\nHost: nobody\r\n\r\n'),
    stdout: 'pipe',
    stderr: 'ignore',
  })
  return new Response(child.stdout).text()
}

// A session that is resumed does not show its certificate again, so that one which has expired would pass.
describe.skipIf(!Bun.which('openssl')).each(['configured', 'maintenance'] as const)('apid %s', (state) => {
  test.each([...allRoles])('gives %s no ticket to resume a session with', async (role) => {
    const output = await heard(state, role)
    expect(output).toContain('TLSv1.3')
    expect(output).not.toContain('NewSessionTicket')
  })
})

for (const waits of [false, true])
  describe(`a machine that ${waits ? 'waits for its configuration' : 'is configured'}`, () => {
    beforeAll(() => {
      machine.waits = waits
    })

    test.each([...allRoles])('grants the role %s what the table lists', async (role) => {
      await walk(channelOf(clientCertificate([role])), [role])
    })

    test('opens nothing to a certificate without a role, with unknown roles, or with a role in its name only', async () => {
      const named = newCertificate({ ca: authority, subject: { commonName: 'os:admin' }, usage: ['clientAuth'], lifetime: day })
      for (const pair of [clientCertificate([]), clientCertificate(['os:root', 'system:masters', 'OS:ADMIN']), named])
        await walk(channelOf(pair), [])
    })

    test('opens to several roles what one of them opens', async () => {
      await walk(channelOf(clientCertificate(['os:reader', 'os:etcd:backup'])), ['os:reader', 'os:etcd:backup'])
    })

    test('believes roles claimed in metadata only from an impersonator', async () => {
      const claim = { 'talos-role': [...allRoles] }
      await walk(channelOf(clientCertificate([])), [], claim)
      await walk(channelOf(clientCertificate(['os:reader'])), ['os:reader'], claim)
      await walk(channelOf(clientCertificate(['os:impersonator'])), [...allRoles], claim)
    })

    // Before apid has heard of the configuration it lets everybody in as a reader: machined's own state decides.
    test.each(['a certificate for clients', ...Object.keys(bad)])(
      'opens to %s what a reader may, while apid is in maintenance',
      async (kind) => {
        const pair = kind in bad ? bad[kind]!(['os:admin']) : clientCertificate(['os:admin'])
        await walk(channelOf(pair, 'maintenance'), ['os:reader'], { 'talos-role': [...allRoles] })
      },
    )

    describe.each(Object.keys(bad))('is out of reach with %s', (kind) => {
      test.each([...allRoles])('for the role %s', async (role) => {
        const channel = channelOf(bad[kind]!([role]))
        const seen = await Promise.all(table.map((right) => outcome(channel, right)))
        expect(table.filter((_, at) => !seen[at]!.startsWith('Unavailable: '))).toEqual([])
      })
    })
  })
