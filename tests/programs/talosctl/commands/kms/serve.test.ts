import { afterAll, expect, test } from 'bun:test'
import { chmodSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { newCA } from '../../../../../src/pki/certificate.ts'
import { kms } from '../../../../../src/programs/talosctl/commands/kms/kms.ts'
import { type ServeOptions, serveKeys } from '../../../../../src/programs/talosctl/commands/kms/serve.ts'
import { connect } from '../../../../../src/rpc/client/channel.ts'
import { textIo } from '../../text-io.ts'

const folder = mkdtempSync(join(tmpdir(), 'ichor-kms-'))
afterAll(() => rmSync(folder, { recursive: true }))
const at = (name: string) => join(folder, name)
const node = '12345678-1234-4123-8123-567812345678'
const listen = '127.0.0.1:0'

const ca = () => newCA({ subject: { organizations: ['kms'] }, kind: 'ed25519', now: new Date(), sans: { ips: ['127.0.0.1'] } })

const file = (name: string, content: string | Uint8Array, mode = 0o600) => {
  writeFileSync(at(name), content, { mode })
  chmodSync(at(name), mode)
  return at(name)
}
const keyFile = file('key', new Uint8Array(32).fill(7))

test('a key file is made once, for its owner alone', async () => {
  const run = () =>
    kms(textIo())
      .exitOverride()
      .parseAsync(['new-key', at('made')], { from: 'user' })
  await run()
  const { mode, size } = statSync(at('made'))
  expect([mode & 0o777, size]).toEqual([0o600, 32])
  await expect(run()).rejects.toThrow('is there already')
})

test.each<[string, Partial<ServeOptions>, string]>([
  ['without TLS by accident', {}, 'use --tls-cert and --tls-key, or --plaintext'],
  ['with half a certificate', { tlsCert: 'a' }, 'use --tls-cert and --tls-key, or --plaintext'],
  ['with both', { plaintext: true, tlsCert: 'a', tlsKey: 'b' }, 'exclude each other'],
  ['at no address', { plaintext: true, listen: 'here' }, '--listen "here" is no address'],
  ['with a key that others can read', { plaintext: true, keyFile: file('open', new Uint8Array(32), 0o640) }, 'chmod 600'],
  ['with a short key', { plaintext: true, keyFile: file('short', 'x') }, 'must hold 32 bytes, not 1'],
  ['with no key', { plaintext: true, keyFile: at('none') }, 'ENOENT; "talosctl kms new-key'],
  ['with no list of machines', { plaintext: true, machines: at('none') }, 'ENOENT'],
  ['with a list of something else', { plaintext: true, machines: file('other', 'a b\n') }, 'line 1 is no UUID'],
  [
    'with a certificate of another key',
    { tlsCert: file('other.crt', ca().crt), tlsKey: file('other.pem', ca().key) },
    'cannot be used together',
  ],
  ['with no certificate', { tlsCert: at('none'), tlsKey: at('none') }, 'ENOENT'],
])('nothing is served %s', async (_, options, reason) => {
  await expect(serveKeys(textIo(), { keyFile, listen, ...options })).rejects.toThrow(reason)
})

test('calls are answered and logged without what they carry', async () => {
  const authority = ca()
  const io = textIo()
  const server = await serveKeys(io, { keyFile, listen, tlsCert: file('crt', authority.crt), tlsKey: file('pem', authority.key) })
  const channel = connect({ address: `127.0.0.1:${server.port}`, tls: { ca: authority.crt } })
  const data = new Uint8Array(32).fill(9)
  const sealed = await channel.unary('sidero.kms.KMSService/Seal', { nodeUuid: node, data })
  expect((await channel.unary('sidero.kms.KMSService/Unseal', { nodeUuid: node, data: sealed.data })).data).toEqual(data)
  const damaged = sealed.data.slice()
  damaged[20] = (damaged[20] ?? 0) ^ 1
  const refused: [{ nodeUuid: string; data: Uint8Array }, string][] = [
    [{ nodeUuid: node, data: damaged }, 'sealed no such key'],
    [{ nodeUuid: 'another', data: sealed.data }, 'sealed no such key'],
    [{ nodeUuid: node, data }, 'a sealed key has 60 bytes, not 32'],
    [{ nodeUuid: '', data: sealed.data }, 'UUID of the machine must have'],
    [{ nodeUuid: 'x'.repeat(129), data: sealed.data }, 'UUID of the machine must have'],
    [{ nodeUuid: 'a\nb', data: sealed.data }, 'UUID of the machine must have'],
  ]
  for (const [request, reason] of refused) await expect(channel.unary('sidero.kms.KMSService/Unseal', request)).rejects.toThrow(reason)
  await expect(channel.unary('sidero.kms.KMSService/Seal', { nodeUuid: node, data: new Uint8Array(31) })).rejects.toThrow('not 31')
  await expect(channel.unary('sidero.kms.KMSService/Seal', { nodeUuid: node, data: new Uint8Array(100_000) })).rejects.toThrow()
  channel.close()
  await server.close()
  expect(io.err).toContain(`key sealed node=${node} client=127.0.0.1`)
  // One line for each call that reached the service, and one for the start; what is no UUID is not repeated.
  expect(io.err.match(/key sealed|key unsealed|request refused/g)?.length).toBe(9)
  expect(io.err).toContain('request refused node=another')
  for (const bytes of [data, sealed.data])
    for (const encoding of ['base64', 'hex'] as const) expect(io.err).not.toContain(Buffer.from(bytes).toString(encoding))
})

test('only the machines of the list are served, and list and certificate are read again', async () => {
  const [authority, next] = [ca(), ca()]
  const io = textIo()
  const options = {
    ...{ keyFile, listen, machines: file('machines', `# rack 1\n${node.toUpperCase()}  # first\n\n`) },
    ...{ tlsCert: file('machines.crt', authority.crt), tlsKey: file('machines.pem', authority.key) },
  }
  const server = await serveKeys(io, options, 20)
  const data = new Uint8Array(32).fill(9)
  const seal = async (nodeUuid: string, roots = authority.crt) => {
    const channel = connect({ address: `127.0.0.1:${server.port}`, tls: { ca: roots } })
    try {
      return await channel.unary('sidero.kms.KMSService/Seal', { nodeUuid, data })
    } finally {
      channel.close()
    }
  }
  const logs = async (text: string) => {
    for (const end = performance.now() + 10_000; !io.err.includes(text); await Bun.sleep(10))
      if (performance.now() > end) throw new Error(`"${text}" is not in ${io.err}`)
  }
  expect((await seal(node)).data.length).toBe(60)
  await expect(seal('another')).rejects.toThrow('does not serve machine "another"')
  file('machines', 'another\n')
  await logs('machines reloaded machines=1')
  expect((await seal('another')).data.length).toBe(60)
  await expect(seal(node)).rejects.toThrow('does not serve machine')
  // A list that cannot be read changes nothing.
  file('machines', 'two words\n')
  await logs('reload failed')
  await expect(seal(node)).rejects.toThrow('does not serve machine')
  file('machines', `${node}\n`)
  // The certificate and its key are written one after the other.
  file('machines.crt', next.crt)
  await logs('cannot be used together')
  file('machines.pem', next.key)
  await logs('certificate reloaded')
  expect((await seal(node, next.crt)).data.length).toBe(60)
  await expect(seal(node)).rejects.toThrow()
  await server.close()
}, 60_000)
