/**
 * Each use of a socket by trustd fails once, in turn: of its listener and of its connection to machined. A request on the way may
 * fail; the next ones succeed, with certificates that were renewed meanwhile, and nothing is left unhandled.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemClock } from '../../../src/cosi/clock.ts'
import { silent } from '../../../src/cosi/log.ts'
import { Store } from '../../../src/cosi/store.ts'
import { Member } from '../../../src/os/cluster/resources/member.ts'
import { OSRootSecret } from '../../../src/os/secrets/resources/os-root-secret.ts'
import { TrustdCertificate } from '../../../src/os/secrets/resources/trustd-certificate.ts'
import { day, newCA, newCertificate, toBase64 } from '../../../src/pki/certificate.ts'
import { newCSR } from '../../../src/pki/request.ts'
import { run } from '../../../src/programs/trustd/trustd.ts'
import { connect } from '../../../src/rpc/client/channel.ts'
import { trustdAccess } from '../../../src/rpc/server/resource-access.ts'
import { serveUnix } from '../../../src/rpc/server/server.ts'
import { stateMethods } from '../../../src/rpc/server/state.ts'
import { freePort } from '../../support/free-port.ts'
import { sample } from '../../support/runs.ts'
import { type Fails, replaceSockets, restoreSockets, SocketFaults } from '../runtime-sockets.ts'

const folder = mkdtempSync(join(tmpdir(), 'ichor-trustd-'))
const socket = join(folder, 'runtime.sock')
const faults = new SocketFaults()
const unhandled: unknown[] = []
const note = (error: unknown) => unhandled.push(error)
let port: number
beforeAll(async () => {
  process.on('unhandledRejection', note)
  process.on('uncaughtException', note)
  port = await freePort()
  // Tests before these may have left sockets of their own.
  replaceSockets((use) => {
    const name = use.replace(socket, 'machined').replace(String(port), 'PORT')
    return /(machined|:PORT)$/.test(name) && faults.fails(name)
  })
})
afterAll(() => {
  restoreSockets()
  process.off('unhandledRejection', note)
  process.off('uncaughtException', note)
  rmSync(folder, { recursive: true })
})

const ca = newCA({ subject: { organizations: ['talos'] }, kind: 'ed25519' })
const token = 'abcdef.0123456789abcdef'

function serverPair() {
  const sans = { ips: ['127.0.0.1'] }
  const { crt, key } = newCertificate({ ca, subject: { commonName: 'n' }, sans, usage: ['serverAuth'], lifetime: day })
  return { crt: toBase64(crt), key: toBase64(key) }
}

/** What machined shows trustd. */
function resources(): Store {
  const store = new Store()
  store.register(TrustdCertificate, OSRootSecret, Member)
  const acceptedCAs = [{ crt: toBase64(ca.crt) }]
  store.put(TrustdCertificate, 'trustd', { acceptedCAs, server: serverPair() })
  const issuingCA = { crt: toBase64(ca.crt), key: toBase64(ca.key) }
  store.put(OSRootSecret, 'os', { issuingCA, acceptedCAs, certSANIPs: [], certSANDNSNames: [], token })
  return store
}

/** Requests certificates from a trustd until it issues one, before and after its own certificate and the token have changed. */
async function requests(fails?: Fails): Promise<Map<string, number>> {
  const store = resources()
  faults.choose()
  const machined = await serveUnix({ path: socket }, { methods: stateMethods(trustdAccess, 'anyone'), store, log: silent })
  faults.choose(fails ?? (() => false))
  const stop = new AbortController()
  const running = run({ host: '127.0.0.1', port }, socket, silent, stop.signal)
  try {
    await succeeds(token)
    const { spec } = store.get(OSRootSecret, 'os')!
    store.put(OSRootSecret, 'os', { ...spec, token: 'fedcba.0123456789abcdef' })
    store.put(TrustdCertificate, 'trustd', { ...store.get(TrustdCertificate, 'trustd')!.spec, server: serverPair() })
    await succeeds('fedcba.0123456789abcdef')
    expect(unhandled.splice(0)).toEqual([])
    return new Map(faults.uses)
  } finally {
    faults.choose()
    stop.abort()
    await running
    await machined.close()
  }
}

async function succeeds(known: string): Promise<void> {
  const end = systemClock.deadline(30_000)
  const { csr } = newCSR({ subject: { commonName: 'worker-1' }, sans: { ips: ['10.0.0.3'] } })
  for (;;) {
    const channel = connect({ address: `127.0.0.1:${port}`, tls: { ca: ca.crt } }, { connectTimeout: 1_000 })
    try {
      const options = { metadata: { token: known }, deadline: 2_000 }
      await channel.unary('securityapi.SecurityService/Certificate', { csr: Buffer.from(csr) }, options)
      return
    } catch (error) {
      if (end.over) throw new Error(`requests fail: ${error}, fired ${faults.fired}`, { cause: error })
      await Bun.sleep(20)
    } finally {
      channel.close()
    }
  }
}

test('requests use every kind of socket', async () => {
  const kinds = ['accept', 'connect', 'open', 'read', 'reply', 'request', 'write']
  const expected = ['127.0.0.1:PORT', 'machined'].flatMap((place) => kinds.map((kind) => `${kind} ${place}`))
  expect([...(await requests()).keys()].sort()).toEqual([...expected, 'listen 127.0.0.1:PORT'].sort())
})

describe('requests come to succeed', () => {
  test.each(sample([1, 2, 3], { fewest: 1 }))('when use %d of every socket fails', async (which) => {
    await requests((_, nth) => nth === which)
    expect(faults.fired).not.toEqual([])
  })

  test.each(sample(['listen', 'accept', 'request', 'reply', 'connect', 'open', 'read', 'write'], { fewest: 1 }))(
    'when the first %s fails',
    async (kind) => {
      await requests((use, nth) => use.startsWith(`${kind} `) && nth === 1)
      expect(faults.fired).not.toEqual([])
    },
  )
})

// Half a minute: for a change of how connections are made.
test.if(process.env.ICHOR_FAULTS === 'all')(
  'requests come to succeed when any single use of any socket fails',
  async () => {
    for (const [use, most] of await requests())
      for (let which = 1; which <= most; which++) await requests((name, nth) => name === use && nth === which)
  },
  600_000,
)
