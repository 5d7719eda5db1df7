import { expect, test } from 'bun:test'
import { truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { defaultSchematic } from '../../../src/programs/factory/schematic.ts'
import { contents, newFolder, served, writeRelease } from './served.ts'

const version = 'v1.13.100'

function factoryOfRelease() {
  const folder = newFolder()
  writeRelease(folder, version)
  writeFileSync(join(folder, 'ichor-amd64.iso'), 'the iso')
  const factory = served(folder)
  const post = async (schematic: object) => {
    const { id } = (await (await factory.ask('/schematics', { method: 'POST', body: JSON.stringify(schematic) })).json()) as { id: string }
    return id
  }
  return { ...factory, folder, post, image: `/image/${defaultSchematic.id}/${version}` }
}

test('an image is served whole, and HEAD states its length', async () => {
  await using factory = factoryOfRelease()
  const answer = await factory.ask(`${factory.image}/kernel-amd64`)
  expect([answer.status, answer.headers.get('content-length')]).toEqual([200, String(contents.vmlinuz.length)])
  expect(Buffer.from(await answer.arrayBuffer()).equals(contents.vmlinuz)).toBe(true)
  const head = await factory.ask(`${factory.image}/initramfs-x86_64.xz`, { method: 'HEAD' })
  expect([head.status, head.headers.get('content-length')]).toEqual([200, String(contents.initramfs.length)])
})

test('a download is resumed only while the image is the same', async () => {
  await using factory = factoryOfRelease()
  const path = `${factory.image}/initramfs-amd64.xz`
  const etag = (await factory.ask(path, { method: 'HEAD' })).headers.get('etag') ?? ''
  const size = contents.initramfs.length
  const rest = await factory.ask(path, { headers: { range: 'bytes=1000-', 'if-range': etag } })
  expect([rest.status, rest.headers.get('content-range')]).toEqual([206, `bytes 1000-${size - 1}/${size}`])
  expect(Buffer.from(await rest.arrayBuffer()).equals(contents.initramfs.subarray(1000))).toBe(true)
  expect((await factory.ask(path, { headers: { range: 'bytes=1000-', 'if-range': '"another"' } })).status).toBe(200)
  const beyond = await factory.ask(path, { headers: { range: `bytes=${size}-` } })
  expect([beyond.status, beyond.headers.get('content-range')]).toEqual([416, `bytes */${size}`])
  expect((await factory.ask(path, { headers: { 'if-none-match': etag } })).status).toBe(304)
})

test('checksums are lines for sha256sum and sha512sum', async () => {
  await using factory = factoryOfRelease()
  for (const algorithm of ['sha256', 'sha512'] as const) {
    const line = await (await factory.ask(`${factory.image}/kernel-amd64.${algorithm}`)).text()
    expect(line).toBe(`${new Bun.CryptoHasher(algorithm).update(contents.vmlinuz).digest('hex')}  kernel-amd64\n`)
  }
})

test('the arguments of a schematic are in the command line and the script', async () => {
  await using factory = factoryOfRelease()
  const id = await factory.post({ customization: { extraKernelArgs: ['ip=dhcp', '-panic'] } })
  const line = 'talos.platform=metal console=tty0 console=ttyS0 pti=on gpt ip=dhcp'
  expect(await (await factory.ask(`/image/${id}/${version}/cmdline-metal-amd64`)).text()).toBe(`${line}\n`)
  const base = `${factory.url}/image/${id}/${version}`
  const script = `#!ipxe\nimgfree\nkernel ${base}/kernel-amd64 ${line}\ninitrd ${base}/initramfs-amd64.xz\nboot\n`
  expect(await (await factory.ask(`/pxe/${id}/1.13.100/metal-x86_64`)).text()).toBe(script)
  expect(await (await factory.ask(`${factory.image}/metal-amd64.iso`)).text()).toBe('the iso')
})

test('what cannot be added to an image that is built is refused', async () => {
  await using factory = factoryOfRelease()
  const id = await factory.post({ customization: { bootloader: 'grub' } })
  for (const path of [`/image/${id}/${version}/initramfs-amd64.xz`, `/pxe/${id}/${version}/metal-amd64`]) {
    const answer = await factory.ask(path)
    expect([answer.status, await answer.text()]).toEqual([400, expect.stringContaining('the schematic has bootloader,')])
  }
})

test.each([
  ['a name', 'kernel-riscv64', 'image "kernel-riscv64" is not one of kernel-amd64,'],
  ['a platform', 'cmdline-aws-amd64', '"aws-amd64": this release is for metal-amd64'],
  ['a file of the release', 'metal-amd64.raw', 'the release has no "ichor-amd64.raw" (ENOENT): make it with mkimage.sh'],
  ['a file beside it', '..%2Fkey', 'image "..%2Fkey" is not one of'],
])('%s that is not there is refused', async (_, name, reason) => {
  await using factory = factoryOfRelease()
  const answer = await factory.ask(`${factory.image}/${name}`)
  expect([answer.status, await answer.text()]).toEqual([404, expect.stringContaining(reason)])
})

test('a hundred downloads at a time are all whole', async () => {
  await using factory = factoryOfRelease()
  const sizes = await Promise.all(
    Array.from({ length: 100 }, async () => {
      const answer = await factory.ask(`${factory.image}/initramfs-amd64.xz`)
      return (await answer.arrayBuffer()).byteLength
    }),
  )
  expect(new Set(sizes)).toEqual(new Set([contents.initramfs.length]))
})

test('answers that nobody reads are bounded in number, and make room when their clients leave', async () => {
  await using factory = factoryOfRelease()
  truncateSync(join(factory.folder, 'ichor-amd64.iso'), 64 << 20) // more than sockets hold
  const { hostname, port } = new URL(factory.url)
  const head = `GET ${factory.image}/metal-amd64.iso HTTP/1.1\r\nhost: ${hostname}\r\n\r\n`
  /** Requests an image and reads no more than the beginning of the answer. */
  const begin = async () => {
    const { promise, resolve } = Promise.withResolvers<string>()
    const data = (socket: Bun.Socket, bytes: Buffer) => {
      socket.pause()
      resolve(bytes.toString('latin1').slice(9, 12))
    }
    const socket = await Bun.connect({ hostname, port: Number(port), socket: { data, open: (opened) => void opened.write(head) } })
    return { socket, status: await promise }
  }
  const open = await Promise.all(Array.from({ length: 256 }, begin))
  expect(new Set(open.map(({ status }) => status))).toEqual(new Set(['200']))
  const refused = await factory.ask(`${factory.image}/metal-amd64.iso`)
  expect([refused.status, await refused.text()]).toEqual([503, 'too many requests at a time: retry later\n'])
  for (const { socket } of open) socket.terminate()
  const again = async (): Promise<number> => {
    const { status } = await factory.ask(`${factory.image}/metal-amd64.iso`, { method: 'HEAD' })
    return status === 503 ? again() : status
  }
  expect(await again()).toBe(200)
})

test('behind a proxy scripts name its address', async () => {
  const folder = newFolder()
  writeRelease(folder, version)
  await using factory = served(folder, { externalUrl: 'https://factory.example.org/images' })
  const script = await (await factory.ask(`/pxe/${defaultSchematic.id}/${version}/metal-amd64`)).text()
  expect(script).toContain(`\ninitrd https://factory.example.org/images/image/${defaultSchematic.id}/${version}/initramfs-amd64.xz\n`)
})
