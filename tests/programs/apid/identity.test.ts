import { expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import os, { tmpdir } from 'node:os'
import { join } from 'node:path'
import { silent } from '../../../src/cosi/log.ts'
import { Store } from '../../../src/cosi/store.ts'
import { NodeAddress } from '../../../src/os/network/resources/node-address.ts'
import { APIServiceConfig } from '../../../src/os/runtime/resources/api-service-config.ts'
import { ApiCertificate } from '../../../src/os/secrets/resources/api-certificate.ts'
import { toBase64 } from '../../../src/pki/certificate.ts'
import { type Identity, identityOf, watchIdentity } from '../../../src/programs/apid/identity.ts'
import { apidAccess } from '../../../src/rpc/server/resource-access.ts'
import { serveUnix } from '../../../src/rpc/server/server.ts'
import { stateMethods } from '../../../src/rpc/server/state.ts'
import { replaceSockets, restoreSockets, SocketFaults } from '../runtime-sockets.ts'
import { authority, clientCertificate } from './nodes.ts'

const { crt, key } = clientCertificate(['os:impersonator'])
const pair = { crt: toBase64(crt), key: toBase64(key) }

test('a node is known by its certificates, its addresses and its names', () => {
  const identity = identityOf(
    { server: pair, client: pair, acceptedCAs: [{ crt: toBase64(authority.crt) }] },
    ['10.0.0.2/24', 'FD00::2/64'],
    ':50000',
  )!
  expect(identity.server.key).toContain('BEGIN PRIVATE KEY')
  expect(identity.authorities).toBe(authority.crt)
  expect(identity.maintenance).toBe(false)
  expect(identity.host).toBe('')
  for (const name of ['10.0.0.2', 'fd00::2', '127.0.0.1', 'localhost', os.hostname().toLowerCase()])
    expect(identity.own.has(name)).toBe(true)
})

test('without a certificate of its own it is nobody yet, without one for calls it forwards nothing', () => {
  expect(identityOf({}, [], ':50000')).toBeUndefined()
  expect(identityOf({ server: pair, client: { crt: '', key: '' } }, [], ':50000')?.client).toBeUndefined()
})

test('changes are followed, also over a machined that was away', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'ichor-identity-'))
  const path = join(folder, 'runtime.sock')
  const store = new Store()
  store.register(ApiCertificate, NodeAddress, APIServiceConfig)
  store.put(ApiCertificate, 'api', { server: pair, acceptedCAs: [], skipVerifyingClientCert: true })
  const serve = () => serveUnix({ path }, { methods: stateMethods(apidAccess, 'anyone'), store, log: silent })
  let machined = await serve()
  const stop = new AbortController()
  const identities = watchIdentity(path, silent, stop.signal)
  const until = async (wanted: (identity: Identity) => boolean) => {
    for (;;) {
      const { value } = await identities.next()
      if (value && wanted(value)) return true
    }
  }
  expect(await until(({ maintenance }) => maintenance)).toBe(true)
  store.put(NodeAddress, 'current', { addresses: ['10.9.0.7/24'], sortAlgorithm: 'v1' })
  expect(await until(({ own, host }) => own.has('10.9.0.7') && host === undefined)).toBe(true)
  const modes = { nodeRoutingDisabled: true, readonlyRoleMode: true, skipVerifyingClientCert: true }
  store.put(APIServiceConfig, 'api', { listenAddress: '[fdae::300:0:0:0:2]:50000', ...modes })
  expect(await until(({ host }) => host === 'fdae::300:0:0:0:2')).toBe(true)
  await machined.close()
  store.put(APIServiceConfig, 'api', { listenAddress: ':50000', ...modes })
  store.put(ApiCertificate, 'api', { server: pair, acceptedCAs: [], skipVerifyingClientCert: false })
  store.destroy(NodeAddress, 'current')
  machined = await serve()
  expect(await until(({ maintenance, host, own }) => !maintenance && host === '' && !own.has('10.9.0.7'))).toBe(true)
  stop.abort()
  expect((await identities.next()).done).toBe(true)
  await machined.close()
  rmSync(folder, { recursive: true })
})

test('each use of the socket fails once, and the identity still follows machined', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'ichor-identity-'))
  const path = join(folder, 'runtime.sock')
  const faults = new SocketFaults()
  replaceSockets((use) => use.endsWith(path) && !use.startsWith('listen') && faults.fails(use.replace(path, 'machined')))
  const store = new Store()
  store.register(ApiCertificate, NodeAddress, APIServiceConfig)
  const put = (skipVerifyingClientCert: boolean) =>
    store.put(ApiCertificate, 'api', { server: pair, acceptedCAs: [], skipVerifyingClientCert })
  const machined = await serveUnix({ path }, { methods: stateMethods(apidAccess, 'anyone'), store, log: silent })
  const follows = async () => {
    put(true)
    const stop = new AbortController()
    for await (const { maintenance } of watchIdentity(path, silent, stop.signal))
      if (maintenance) put(false)
      else stop.abort()
  }
  faults.choose(() => false)
  await follows()
  for (const [use, most] of new Map(faults.uses))
    for (let which = 1; which <= most; which++) {
      faults.choose((each, nth) => each === use && nth === which)
      await follows()
    }
  restoreSockets()
  await machined.close()
  rmSync(folder, { recursive: true })
}, 60_000)
