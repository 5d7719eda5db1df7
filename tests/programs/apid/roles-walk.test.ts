/** Every method of the machine API behind a real door, by callers of every kind: what no role allows is refused. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { silent } from '../../../src/cosi/log.ts'
import { Store } from '../../../src/cosi/store.ts'
import { day, newCA, newCertificate, type PemPair } from '../../../src/pki/certificate.ts'
import { tlsKey } from '../../../src/pki/key.ts'
import { Door } from '../../../src/programs/apid/door.ts'
import { type Channel, connect } from '../../../src/rpc/client/channel.ts'
import type { Methods } from '../../../src/rpc/messages.ts'
import { allRoles, type Method } from '../../../src/rpc/server/method.ts'
import { type Server, serveUnix } from '../../../src/rpc/server/server.ts'
import { RpcError } from '../../../src/rpc/status.ts'
import { authority, clientCertificate, failure, freePort, identityOf } from './nodes.ts'

type Path = keyof Methods

const table = (await Bun.file(`${import.meta.dir}/../../proto/contract/api-services.tsv`).text())
  .split('\n')
  .slice(1)
  .filter(Boolean)
  .map((line) => {
    const [pkg, service, method, clientStreams, serverStreams, , , roles = '', , , servedBy] = line.split('\t')
    const kind = ({ '00': 'unary', '01': 'server', '10': 'client', '11': 'bidi' } as const)[`${clientStreams}${serverStreams}` as '00']
    return { path: `${pkg}.${service}/${method}` as Path, kind, roles: roles.split(',').filter(Boolean), servedBy }
  })
  .filter(({ servedBy }) => servedBy === 'machined')

/** How a call ends that was let in. */
const inside: [string, string] = ['Aborted', 'you are in']
const refused: [string, string] = ['PermissionDenied', 'not authorized']

const folder = mkdtempSync(join(tmpdir(), 'ichor-roles-'))
const channels: Channel[] = []
let port: number
let backend: Server
let door: Door

beforeAll(async () => {
  port = await freePort()
  const enter = () => {
    throw new RpcError('Aborted', 'you are in')
  }
  const methods = table.map(({ path, kind, roles }) => ({ path, kind, access: roles, handle: enter }) as unknown as Method)
  const socket = join(folder, 'machine.sock')
  backend = await serveUnix({ path: socket }, { methods, store: new Store(), log: silent })
  door = new Door({ host: '127.0.0.1', port, backend: socket, remotePort: port, log: silent })
  await door.become(identityOf('127.0.0.1', 'controlplane'))
})
afterAll(async () => {
  for (const channel of channels) channel.close()
  await door.close()
  await backend.close()
  rmSync(folder, { recursive: true, force: true })
})

function channelOf(pair: PemPair | undefined): Channel {
  const own = pair && { cert: pair.crt, key: tlsKey(pair.key) }
  const channel = connect({ address: `127.0.0.1:${port}`, tls: { ca: authority.crt, ...own } })
  channels.push(channel)
  return channel
}

/** How a call of a method ends, whatever its kind. */
async function outcome(channel: Channel, { path, kind }: { path: Path; kind: string }, metadata: Record<string, string | string[]> = {}) {
  const options = { metadata, deadline: 20_000 }
  const call = async () => {
    if (kind === 'unary') await channel.unary(path as never, {} as never, options)
    else if (kind === 'client') await channel.clientStream(path as never, [] as never, options)
    else
      for await (const _ of kind === 'server'
        ? channel.serverStream(path as never, {} as never, options)
        : channel.bidi(path as never, [] as never, options));
  }
  return failure(call())
}

describe('every method', () => {
  test('is in the table with roles: none is for everybody', () => {
    expect(table.length).toBeGreaterThan(70)
    expect(table.filter(({ roles }) => roles.length === 0)).toEqual([])
  })

  test.each([...allRoles])('is open to %s where the contract says so, and closed everywhere else', async (role) => {
    const channel = channelOf(clientCertificate([role]))
    for (const method of table)
      expect([method.path, await outcome(channel, method)]).toEqual([method.path, method.roles.includes(role) ? inside : refused])
  })

  test('is closed to a certificate without a role, with roles nobody knows, and with a role in its name only', async () => {
    const named = newCertificate({ ca: authority, subject: { commonName: 'os:admin' }, usage: ['clientAuth'], lifetime: day })
    for (const pair of [clientCertificate([]), clientCertificate(['os:root', 'system:masters', 'OS:ADMIN']), named]) {
      const channel = channelOf(pair)
      for (const method of table) expect([method.path, await outcome(channel, method)]).toEqual([method.path, refused])
    }
  })

  test('is closed to claims in metadata, unless an impersonator makes them', async () => {
    const claim = { 'talos-role': [...allRoles] }
    const [nobody, reader, impersonator] = [[], ['os:reader'], ['os:impersonator']].map((roles) => channelOf(clientCertificate(roles)))
    for (const method of table) {
      expect([method.path, await outcome(nobody!, method, claim)]).toEqual([method.path, refused])
      const may = method.roles.includes('os:reader') ? inside : refused
      expect([method.path, await outcome(reader!, method, claim)]).toEqual([method.path, may])
      expect([method.path, await outcome(impersonator!, method, claim)]).toEqual([method.path, inside])
    }
  })

  test('is closed to several roles together only when none of them opens it', async () => {
    const channel = channelOf(clientCertificate(['os:reader', 'os:etcd:backup']))
    for (const method of table) {
      const may = method.roles.some((role) => ['os:reader', 'os:etcd:backup'].includes(role))
      expect([method.path, await outcome(channel, method)]).toEqual([method.path, may ? inside : refused])
    }
  })

  const twin = newCA({ subject: { organizations: ['talos'] }, kind: 'ed25519' })
  const past = new Date(Date.now() - 3 * 86_400_000)
  const future = new Date(Date.now() + 3 * 86_400_000)
  test.each<[string, PemPair | undefined]>([
    ['no certificate', undefined],
    ['an expired certificate', clientCertificate(['os:admin'], { now: past })],
    ['a certificate that is not valid yet', clientCertificate(['os:admin'], { now: future })],
    ['one of another authority with the same subject', clientCertificate(['os:admin'], { ca: twin })],
    ['a server’s certificate', clientCertificate(['os:admin'], { usage: ['serverAuth'] })],
    ['one for servers and clients', clientCertificate(['os:admin'], { usage: ['clientAuth', 'serverAuth'] })],
  ])('is out of reach with %s', async (_, pair) => {
    const channel = channelOf(pair)
    for (const method of table) expect([method.path, (await outcome(channel, method))[0]]).toEqual([method.path, 'Unavailable'])
  })
})
