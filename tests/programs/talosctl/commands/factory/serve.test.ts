import { expect, test } from 'bun:test'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { newCA } from '../../../../../src/pki/certificate.ts'
import { type ServeOptions, startFactory } from '../../../../../src/programs/talosctl/commands/factory/serve.ts'
import { buildExtension } from '../../../../../src/programs/talosctl/extension/build.ts'
import { newFolder, writeRelease } from '../../../factory/served.ts'
import { textIo } from '../../text-io.ts'

const folder = newFolder()
const file = (name: string, content: string, mode = 0o600) => {
  writeFileSync(join(folder, name), content, { mode })
  return join(folder, name)
}
const listen = '127.0.0.1:0'
const cacheSize = '1GiB'

test.each<[string, Partial<ServeOptions>, string]>([
  ['at no address', { listen: 'here' }, '--listen "here" is no address and port'],
  ['with half a certificate', { tlsCert: 'a' }, '--tls-cert and --tls-key go together'],
  ['with a token that others can read', { tokenFile: file('open', 'x'.repeat(20), 0o644) }, 'chmod 600'],
  ['with a short token', { tokenFile: file('short', 'x') }, 'must hold 16 to 4096'],
  ['with no token', { tokenFile: join(folder, 'none') }, 'ENOENT'],
  ['with a size that is none', { cacheSize: '0GiB' }, '--cache-size "0GiB" is no size: use for example 16GiB'],
  ['at no outer address', { externalUrl: 'factory.example.org' }, '--external-url "factory.example.org" is no address'],
  ['with a key that is none', { key: file('none.pem', 'x') }, 'no private Ed25519 key in PEM'],
  ['with half a key for Secure Boot', { secureBootKey: 'a' }, '--secure-boot-key and --secure-boot-cert go together'],
  ['with two signers', { secureBootKey: 'a', secureBootCert: 'b', signCommand: 'c' }, 'leave one of them out'],
  ['with a program that is not there', { signCommand: 'no-such-signer -x' }, 'there is no program "no-such-signer"'],
  ['with a policy key that is none', { pcrKey: file('policy.pem', 'x') }, 'no private key without a passphrase in PEM'],
  ['with no extensions', { extensions: join(folder, 'none') }, 'ENOENT: name a folder of images, or a file with one image each line'],
  ['with no statements', { vex: [join(folder, 'none')] }, 'none": ENOENT'],
  ['with faults in statements', { vex: [file('vex.json', '{"version":0}')] }, 'vex.json": version must be a number from 1 on'],
  ['without images', { images: join(folder, 'none') }, 'read the folder of images: ENOENT'],
])('nothing is served %s', async (_, options, reason) => {
  await expect(startFactory(textIo(), { images: folder, listen, cacheSize, ...options })).rejects.toThrow(reason)
})

test('versions are served with TLS and a token, and schematics are kept', async () => {
  const images = newFolder()
  writeRelease(images, 'v1.13.100')
  const { crt, key } = newCA({ subject: { organizations: ['factory'] }, kind: 'ed25519', now: new Date(), sans: { ips: ['127.0.0.1'] } })
  const options = { images, listen, cacheSize, cache: join(folder, 'cache'), tlsCert: file('crt', crt), tlsKey: file('pem', key) }
  const server = await startFactory(textIo(), { ...options, tokenFile: file('token', `${'t'.repeat(20)}\n`) })
  const init = { headers: { authorization: `Bearer ${'t'.repeat(20)}` }, tls: { ca: crt } }
  const posted = await fetch(`${server.url}/schematics`, { ...init, method: 'POST', body: '{customization: {extraKernelArgs: [a]}}' })
  const { id } = (await posted.json()) as { id: string }
  expect(await (await fetch(`${server.url}/versions`, init)).json()).toEqual(['v1.13.100'])
  await server.close()
  const again = await startFactory(textIo(), { images, listen, cacheSize, cache: options.cache })
  expect((await fetch(`${again.url}/schematics/${id}`)).status).toBe(200)
  await again.close()
})

test('extensions are offered for the releases they are made for, and one with faults is left out, a line each', async () => {
  const images = newFolder()
  writeRelease(images, 'v1.13.100')
  const offered = newFolder()
  const build = async (name: string, range: string, path = `usr/local/share/${name}`) => {
    const source = join(newFolder(), name)
    mkdirSync(join(source, 'rootfs', path), { recursive: true })
    writeFileSync(join(source, 'rootfs', path, 'text'), name, { mode: 0o644 })
    const metadata = { name, version: '1', release: range }
    await buildExtension({ folder: source, metadata, packages: [], arch: 'amd64', output: join(offered, `${name}.tar`) })
  }
  await build('here', '>= 1.13.0')
  await build('later', '>= 1.14.0')
  writeFileSync(join(offered, 'broken.tar'), 'x'.repeat(1024))
  const io = textIo()
  const server = await startFactory(io, { images, listen, cacheSize, extensions: offered })
  const list = (await (await fetch(`${server.url}/version/v1.13.100/extensions/official`)).json()) as { name: string }[]
  expect(list.map(({ name }) => name)).toEqual(['here'])
  expect(io.err).toContain('extension left out')
  await server.close()
})
