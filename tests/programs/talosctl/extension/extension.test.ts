import { afterAll, beforeAll, expect, test } from 'bun:test'
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { gzipSync, zstdCompressSync } from 'node:zlib'
import { writeImageArchive } from '../../../../src/programs/talosctl/archive/image-archive.ts'
import { extension } from '../../../../src/programs/talosctl/commands/extension/extension.ts'
import { ExtensionFiles } from '../../../../src/programs/talosctl/extension/files.ts'
import { openImage } from '../../../../src/programs/talosctl/extension/image-source.ts'
import { unpackExtension } from '../../../../src/programs/talosctl/extension/unpack.ts'
import { type TarMember, writeTar } from '../../../../src/wire/tar/write.ts'
import { textIo } from '../text-io.ts'

let work: string
beforeAll(() => {
  work = mkdtempSync(join(tmpdir(), 'extension-test-'))
})
afterAll(() => rmSync(work, { recursive: true, force: true }))

const manifest = (release = '>= 1.13.0', name = 'hello') => `version: v1alpha1
metadata:
  name: ${name}
  version: "1.10"
  author: Somebody
  description: Greets
  compatibility:
    talos:
      version: "${release}"
  unknown: ignored
`

const sha256 = (bytes: Uint8Array) => new Bun.CryptoHasher('sha256').update(bytes).digest('hex')
const file = (path: string, text: string, mode = 0o644): TarMember => ({
  path,
  type: 'file',
  mode,
  size: Buffer.byteLength(text),
  content: Buffer.from(text),
})
const dir = (path: string): TarMember => ({ path, type: 'directory', mode: 0o755 })

/** An image of these layers, each compressed as its media type states. */
async function image(name: string, layers: readonly (readonly TarMember[])[], compression: '' | '+gzip' | '+zstd' = ''): Promise<string> {
  const path = join(work, `${name}.tar`)
  const archived = await Promise.all(
    layers.map(async (members) => {
      const tar = Buffer.concat(await Array.fromAsync(writeTar(members)))
      const blob = compression === '+gzip' ? gzipSync(tar) : compression === '+zstd' ? zstdCompressSync(tar) : tar
      return {
        mediaType: `application/vnd.oci.image.layer.v1.tar${compression}`,
        diffId: `sha256:${sha256(tar)}`,
        digest: `sha256:${sha256(blob)}`,
        size: blob.length,
        content: [{ bytes: blob }],
      }
    }),
  )
  await writeImageArchive(path, { arch: 'amd64', layers: archived, config: {}, annotations: {} })
  return path
}

const read = async (path: string, release = 'v1.13.0') => {
  const folder = mkdtempSync(join(work, 'read-'))
  return await unpackExtension(await openImage(path, { io: textIo() }), { folder, arch: 'amd64', release })
}

/** Runs `talosctl extension`; its outputs. */
async function run(...args: string[]) {
  const io = textIo()
  await extension(io).exitOverride().parseAsync(args, { from: 'user' })
  return io
}

const serviceSpec = 'rootfs/usr/local/etc/containers/s.yaml'
const service = (entrypoint: string) => `name: s\ncontainer:\n  entrypoint: ${entrypoint}\nrestart: always\n`

const plain = [file('manifest.yaml', manifest()), dir('rootfs'), file('rootfs/usr/local/bin/hello', 'hi', 0o755)]

test.each(['', '+gzip', '+zstd'] as const)('layers are read, compressed%s or not', async (compression) => {
  const { metadata, entries } = await read(await image(`compressed${compression}`, [plain], compression))
  expect(metadata).toEqual({
    name: 'hello',
    version: '1.10',
    author: 'Somebody',
    description: 'Greets',
    compatibility: { talos: { version: '>= 1.13.0' } },
  })
  expect(entries.map(({ path, type, size }) => [path, type, size])).toEqual([['/usr/local/bin/hello', 'file', 2]])
  expect(readFileSync(entries[0]?.source ?? '', 'utf8')).toBe('hi')
})

test('a layer adds to, replaces and hides what is in those below it', async () => {
  const lower = [
    ...plain,
    file('rootfs/usr/local/a/kept', 'old'),
    file('rootfs/usr/local/a/gone', 'x'),
    file('rootfs/usr/local/b/one', 'x'),
    file('rootfs/usr/local/b/deep/two', 'x'),
    file('rootfs/usr/local/c/below', 'x'),
  ]
  const upper = [
    file('rootfs/usr/local/a/kept', 'new'),
    file('rootfs/usr/local/a/.wh.gone', ''),
    file('rootfs/usr/local/b/three', 'x'),
    file('rootfs/usr/local/b/.wh..wh..opq', ''),
    file('rootfs/usr/local/c', 'a file now'),
    { path: 'rootfs/usr/local/same', type: 'hardlink', mode: 0o644, target: 'rootfs/usr/local/a/kept' } as const,
  ]
  const { entries } = await read(await image('layers', [lower, upper]))
  expect(entries.map(({ path }) => path)).toEqual([
    '/usr/local/a/kept',
    '/usr/local/b/three',
    '/usr/local/bin/hello',
    '/usr/local/c',
    '/usr/local/same',
  ])
  expect(readFileSync(entries.find(({ path }) => path === '/usr/local/same')?.source ?? '', 'utf8')).toBe('new')
})

test.each<[what: string, members: TarMember[], message: string]>([
  ['no manifest', [dir('rootfs')], '"manifest.yaml" is missing'],
  ['no rootfs', [file('manifest.yaml', manifest())], '"rootfs" is missing'],
  ['a further entry', [...plain, file('readme', '')], '"/readme" is not expected: an extension has only "manifest.yaml" and "rootfs"'],
  ['another version', [file('manifest.yaml', 'version: v2\n'), dir('rootfs')], 'version "v2": must be v1alpha1'],
  ['a manifest that is no YAML', [file('manifest.yaml', '{'), dir('rootfs')], '"manifest.yaml" is not YAML'],
  ['a name with a slash', [file('manifest.yaml', manifest('', 'a/b')), dir('rootfs')], 'metadata.name "a/b": must be 1 to 63 letters'],
  ['another release', [file('manifest.yaml', manifest('< 1.13.0')), dir('rootfs')], 'is made for releases < 1.13.0, this is v1.13.0'],
  ['a range that is none', [file('manifest.yaml', manifest('new')), dir('rootfs')], '"new" is no condition such as ">= 1.13.0"'],
  ['a program of the system', [...plain, file('rootfs/usr/bin/sh', '')], '"/usr/bin/sh" is outside of what extensions may hold'],
  ['a name like a folder', [...plain, file('rootfs/usr/localhost', '')], '"/usr/localhost" is outside of what extensions may hold'],
  ['a file for everyone', [...plain, file('rootfs/usr/local/x', '', 0o666)], '"/usr/local/x" can be written by everyone'],
  ['a set-user-ID program', [...plain, file('rootfs/usr/local/x', '', 0o4755)], '"/usr/local/x" would run with the rights of its owner'],
  ['a service without a root', [...plain, file(serviceSpec, service('/hi'))], 'the service has no root'],
  [
    'a service without its program',
    [...plain, file(serviceSpec, service('/hi')), file('rootfs/usr/local/lib/containers/s/ho', '')],
    'container.entrypoint "/hi" is not in "/usr/local/lib/containers/s"',
  ],
  ['a service that is none', [...plain, file(serviceSpec, 'name: S\n')], 'name must be lower-case letters'],
  [
    'a pipe',
    [...plain, { path: 'rootfs/usr/local/x', type: 'fifo', mode: 0o644 }],
    '"/usr/local/x" is neither a file, a folder nor a symbolic link',
  ],
])('%s is refused in one line', async (what, members, message) => {
  const path = await image(what.replaceAll(' ', '-'), [members])
  await expect(read(path)).rejects.toThrow(message)
})

test('a path that leads out of the image is refused', async () => {
  const content = (async function* () {})()
  const entry = { name: 'rootfs/../x', type: 'file', mode: 0o644, size: 0, target: '', content } as const
  await expect(new ExtensionFiles('x', work).add(entry)).rejects.toThrow('"rootfs/../x" leads out of the image')
})

test('every fault is listed, up to a number', async () => {
  const many = Array.from({ length: 25 }, (_, index) => file(`rootfs/etc/${index}`, ''))
  const error = await read(await image('many', [[...plain, ...many]])).catch((one) => one)
  expect(error.message.split('\n')).toHaveLength(21)
  expect(error.message).toEndWith('5 more entries have such faults')
})

test('what is no image is refused in one line', async () => {
  writeFileSync(join(work, 'text'), 'no archive')
  await expect(openImage(join(work, 'text'), { io: textIo() })).rejects.toThrow('name an OCI image archive')
  await expect(openImage(join(work, 'nothing.tar'), { io: textIo() })).rejects.toThrow('there is no such file or folder')
  mkdirSync(join(work, 'empty'))
  await expect(openImage(join(work, 'empty'), { io: textIo() })).rejects.toThrow('it has no "index.json"')
})

test('a damaged layer is refused', async () => {
  const path = await image('damaged', [plain])
  const bytes = readFileSync(path)
  bytes.write('HI', bytes.indexOf('hi\0\0'))
  writeFileSync(path, bytes)
  await expect(read(path)).rejects.toThrow('is damaged')
})

function source(name: string, files: Record<string, string>): string {
  const folder = join(work, name)
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), text)
  }
  return folder
}

test('a folder becomes an extension: the same bytes for the same files', async () => {
  const folder = source('built', {
    'manifest.yaml': manifest(),
    'rootfs/usr/local/bin/hello': 'hi',
    'rootfs/usr/local/lib/containers/hello/hello': 'hi',
  })
  symlinkSync('hello', join(folder, 'rootfs/usr/local/bin/hi'))
  const service = join(work, 'service.yaml')
  writeFileSync(service, 'name: hello\ncontainer: {entrypoint: /hello}\nrestart: always\n')
  const [one, two] = [join(work, 'one.tar'), join(work, 'two.tar')]
  expect((await run('build', folder, '--service', service, '--output', one)).out).toBe(`"${one}": extension hello 1.10 for amd64\n`)
  await run('build', folder, '--service', service, '--output', two)
  expect(readFileSync(one).equals(readFileSync(two))).toBe(true)
  expect((await run('validate', one)).out).toContain('extension hello 1.10 is valid')
  const [shown] = JSON.parse((await run('inspect', one, '--output', 'json')).out)
  expect(shown.files.map(({ path, target }: { path: string; target?: string }) => [path, target])).toEqual([
    ['/usr/local/bin/hello', undefined],
    ['/usr/local/bin/hi', 'hello'],
    ['/usr/local/etc/containers/hello.yaml', undefined],
    ['/usr/local/lib/containers/hello/hello', undefined],
    ['/usr/local/share/spdx/hello.spdx.json', undefined],
  ])
})

test('flags take the place of a manifest', async () => {
  const folder = source('flags', { 'rootfs/usr/local/x': '' })
  const output = join(work, 'flags.tar')
  await run('build', folder, '--name', 'x', '--version', '2', '--compatible-with', '>= 1.13.0', '--output', output)
  expect((await run('inspect', output)).out).toContain('COMPATIBLE WITH   >= 1.13.0\n')
})

test.each<[what: string, args: (folder: string) => string[], message: string]>([
  ['no name', (folder) => [folder], 'give --name and --version'],
  ['nothing', () => ['--name', 'x', '--version', '1'], 'there is nothing to build from'],
  ['a package that is missing', () => ['--name', 'x', '--version', '1', '--package', 'no.deb'], 'there is no such file'],
  ['a range that is none', (folder) => [folder, '--name', 'x', '--version', '1', '--compatible-with', 'new'], '"new" is no condition'],
])('%s is refused, and nothing is written', async (what, args, message) => {
  const output = join(work, 'refused.tar')
  const folder = source(`refused-${what}`, { 'rootfs/usr/local/x': '' })
  await expect(run('build', ...args(folder), '--output', output)).rejects.toThrow(message)
  expect(existsSync(output)).toBe(false)
})

test('a manifest and flags exclude each other', async () => {
  const folder = source('both', { 'manifest.yaml': manifest(), 'rootfs/usr/local/x': '' })
  await expect(run('build', folder, '--name', 'y', '--output', join(work, 'both.tar'))).rejects.toThrow('write name "y" there')
})

test('a file for everyone is not built', async () => {
  const folder = source('open', { 'manifest.yaml': manifest(), 'rootfs/usr/local/x': '' })
  chmodSync(join(folder, 'rootfs/usr/local/x'), 0o666)
  await expect(run('build', folder, '--output', join(work, 'open.tar'))).rejects.toThrow('can be written by everyone')
})
