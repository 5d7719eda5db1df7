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
  ['with no certificate', { tlsCert: at('none'), tlsKey: at('none') }, 'ENOENT'],
])('nothing is served %s', async (_, options, reason) => {
  await expect(serveKeys(textIo(), { keyFile, listen, ...options })).rejects.toThrow(reason)
})

test('calls are answered and logged without what they carry', async () => {
  const ca = newCA({ subject: { organizations: ['kms'] }, kind: 'ed25519', now: new Date(), sans: { ips: ['127.0.0.1'] } })
  const io = textIo()
  const server = await serveKeys(io, { keyFile, listen, tlsCert: file('crt', ca.crt), tlsKey: file('pem', ca.key) })
  const channel = connect({ address: `127.0.0.1:${server.port}`, tls: { ca: ca.crt } })
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
  expect(io.err).toContain('sealed key refused node=another')
  for (const bytes of [data, sealed.data])
    for (const encoding of ['base64', 'hex'] as const) expect(io.err).not.toContain(Buffer.from(bytes).toString(encoding))
})
