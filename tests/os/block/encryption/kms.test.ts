/** Keys that a server seals: the client of a machine, and servers that answer as they should, otherwise, or not at all. */
import { afterAll, expect, test } from 'bun:test'
import { silent } from '../../../../src/cosi/log.ts'
import { Store } from '../../../../src/cosi/store.ts'
import { kmsKeys } from '../../../../src/os/block/encryption/kms.ts'
import { KeyError, type Siblings } from '../../../../src/os/block/encryption/passphrase.ts'
import type { KeyUse } from '../../../../src/os/block/encryption/sealed-kind.ts'
import { Outbound } from '../../../../src/os/outbound.ts'
import { newCA } from '../../../../src/pki/certificate.ts'
import { tlsKey } from '../../../../src/pki/key.ts'
import { kmsMethods } from '../../../../src/programs/kms/methods.ts'
import { siblingMethods } from '../../../../src/programs/trustd/siblings.ts'
import { type Method, unary } from '../../../../src/rpc/server/method.ts'
import { type Server, servePlain, serveTls } from '../../../../src/rpc/server/server.ts'
import { RpcError } from '../../../../src/rpc/status.ts'
import { parseKmsEndpoint, siblingEndpoint } from '../../../../src/wire/luks2/kms-endpoint.ts'

const host = '127.0.0.1'
const servers: Server[] = []
afterAll(() => Promise.all(servers.map((server) => server.close())))

const serving = (methods: Method[]) => ({ methods, store: new Store(), log: silent, roles: () => new Set<never>() })
async function plain(methods: Method[]): Promise<string> {
  const server = await servePlain({ host, port: 0 }, serving(methods))
  servers.push(server)
  return `grpc://${host}:${server.port}`
}

const trusting = (roots: string) => new Outbound({ publicRoots: '', addedRoots: () => roots, variables: () => [] })
const kind = kmsKeys(trusting(''))
const uuid = '12345678-1234-4123-8123-567812345678'
const use = (kmsEndpoint: string, machineUUID = uuid): KeyUse => ({
  ...{ key: { slot: 1, type: 'kms', kmsEndpoint }, slot: 1, volume: 'STATE', sources: { machineUUID } },
})
const secret = Uint8Array.from({ length: 32 }, (_, index) => index * 3)
const key = (fill: number) => new Uint8Array(32).fill(fill)
const failure = (promise: Promise<unknown>) => promise.then(() => undefined).catch((error: KeyError) => error)

test.each([
  ['grpc://kms.example:4050', 'kms.example:4050', true],
  ['kms.example:4050', 'kms.example:4050', true],
  ['10.0.0.1', '10.0.0.1:443', true],
  ['https://kms.example', 'kms.example:443', false],
  ['https://[fd00::1]:4050/path?query', '[fd00::1]:4050', false],
  ['HTTPS://kms.example:1', 'kms.example:1', false],
])('the endpoint %s is one', (text, address, plain) => {
  expect(parseKmsEndpoint(text)).toEqual({ address, plain })
})

test.each([
  '',
  'grpc://',
  'https://:443',
  'a b:1',
  'host:99999',
  'host:0',
  'user@host:1/',
  'dns://kms.example:1',
  'http://kms.example:1',
  'constructor://kms.example:1',
])('the endpoint "%s" is none', (text) => {
  if (text.includes('@')) return expect(parseKmsEndpoint(text)?.address).not.toBe('host:1')
  expect(parseKmsEndpoint(text)).toBeUndefined()
})

test('a key is sealed, and unsealed for the same machine by the same server only', async () => {
  const endpoint = await plain(kmsMethods(() => [key(1)]))
  const data = await kind.seal(secret, use(endpoint))
  expect(Object.keys(data)).toEqual(['sealedData'])
  expect(Buffer.from(String(data.sealedData), 'base64').length).toBe(60)
  expect(await kind.unseal(data, use(endpoint))).toEqual(secret)
  expect(await kind.unseal(data, use(endpoint, uuid.toUpperCase()))).toEqual(secret)
  const otherMachine = await failure(kind.unseal(data, use(endpoint, uuid.replace('1', '2'))))
  expect(otherMachine?.message).toContain('sealed no such key for "22345678-')
  expect([otherMachine instanceof KeyError, otherMachine?.passing]).toEqual([true, false])
  await expect(kind.unseal(data, use(await plain(kmsMethods(() => [key(2)]))))).rejects.toThrow(
    'does not unseal it: this server sealed no such key',
  )
})

test('over TLS the authorities of the machine are trusted, and no other', async () => {
  const ca = newCA({ subject: { organizations: ['kms'] }, kind: 'ed25519', now: new Date(), sans: { ips: [host] } })
  const server = await serveTls({ host, port: 0 }, { cert: ca.crt, key: tlsKey(ca.key) }, serving(kmsMethods(() => [key(1)])))
  servers.push(server)
  const endpoint = `https://${host}:${server.port}`
  const trusted = kmsKeys(trusting(ca.crt))
  expect(await trusted.unseal(await trusted.seal(secret, use(endpoint)), use(endpoint))).toEqual(secret)
  const other = newCA({ subject: { organizations: ['other'] }, kind: 'ed25519', now: new Date() })
  const refused = await failure(kmsKeys(trusting(other.crt)).seal(secret, use(endpoint)))
  expect(refused?.message).toContain('certificate is not trusted')
})

test('a server that is not there may be there later', async () => {
  const gone = await failure(kind.seal(secret, use(`grpc://${host}:1`)))
  expect(gone?.message).toContain(`the KMS "grpc://${host}:1" does not seal it`)
  expect(gone?.passing).toBe(true)
})

const answering = (data: Uint8Array): Method[] => [
  unary('sidero.kms.KMSService/Seal', 'anyone', () => ({ data })),
  unary('sidero.kms.KMSService/Unseal', 'anyone', () => ({ data })),
]

test('answers that are no key are refused, and so is what a disk holds in place of one', async () => {
  const [none, huge] = [await plain(answering(new Uint8Array())), await plain(answering(new Uint8Array(4096)))]
  await expect(kind.seal(secret, use(none))).rejects.toThrow('0 bytes in place of a sealed key')
  await expect(kind.seal(secret, use(huge))).rejects.toThrow('4096 bytes in place of a sealed key')
  await expect(kind.unseal({ sealedData: 'AAAA' }, use(huge))).rejects.toThrow('4096 bytes in place of a key')
  for (const sealedData of [undefined, 7, '', '!!', 'A'.repeat(10_000)])
    await expect(kind.unseal({ sealedData }, use(huge))).rejects.toThrow('holds no sealed key')
  const refusing = await plain([
    unary('sidero.kms.KMSService/Seal', 'anyone', () => {
      throw new RpcError('PermissionDenied', 'not you')
    }),
  ])
  expect(await failure(kind.seal(secret, use(refusing)))).toMatchObject({ passing: false, message: expect.stringContaining('not you') })
})

test('control planes seal for a volume: those that cannot are skipped, and the token is needed', async () => {
  const ca = newCA({ subject: { organizations: ['talos'] }, kind: 'ed25519', now: new Date(), sans: { ips: [host] } })
  const plane = async (fill?: number) => {
    const methods = siblingMethods(
      () => (fill === undefined ? undefined : [key(fill)]),
      () => 'token',
    )
    const server = await serveTls({ host, port: 0 }, { cert: ca.crt, key: tlsKey(ca.key) }, serving(methods))
    servers.push(server)
    return `${host}:${server.port}`
  }
  const addresses = [`${host}:1`, await plane(), await plane(5)]
  const on = (siblings: Siblings | undefined, volume = 'EPHEMERAL'): KeyUse => ({
    ...{ key: { slot: 0, type: 'kms', kmsEndpoint: siblingEndpoint }, slot: 0, volume, sources: { siblings } },
  })
  const known = { addresses, ca: ca.crt, token: 'token' }
  const data = await kind.seal(secret, on(known))
  expect(await kind.unseal(data, on(known))).toEqual(secret)
  expect(await kind.unseal(data, on({ ...known, addresses: addresses.toReversed() }))).toEqual(secret)
  const none = await failure(kind.unseal(data, on(undefined)))
  expect([none?.message, none?.passing]).toEqual(['no control plane of the cluster is known yet', true])
  const without = await failure(kind.unseal(data, on({ ...known, addresses: addresses.slice(0, 2) })))
  expect(without?.message).toContain('this control plane has no SiblingKeysConfig')
  expect(without?.passing).toBe(true)
  const last = addresses.slice(2)
  const [otherVolume, otherToken] = [
    await failure(kind.unseal(data, on({ ...known, addresses: last }, 'u-data'))),
    await failure(kind.unseal(data, on({ ...known, addresses: last, token: 'other' }))),
  ]
  expect([otherVolume?.passing, otherToken?.passing]).toEqual([false, false])
  expect(otherVolume?.message).toContain('no control plane unseals it')
  expect(otherToken?.message).toContain('invalid token')
  const other = newCA({ subject: { organizations: ['other'] }, kind: 'ed25519', now: new Date() })
  expect((await failure(kind.unseal(data, on({ ...known, ca: other.crt }))))?.message).toContain('certificate is not trusted')
})

test('a machine that cannot be named seals nothing', async () => {
  await expect(kind.seal(secret, use('grpc://a:1', ''))).rejects.toThrow('no usable UUID')
  await expect(kind.seal(secret, use('grpc://'))).rejects.toThrow('its endpoint "grpc://" is none')
})
