import { afterAll, expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { silent } from '../../../../../src/cosi/log.ts'
import { offeredExtensions } from '../../../../../src/programs/talosctl/commands/factory/offered.ts'
import { buildExtension } from '../../../../../src/programs/talosctl/extension/build.ts'

const work = mkdtempSync(join(tmpdir(), 'ichor-offered-'))
const images = join(work, 'images')
mkdirSync(images)
afterAll(() => rmSync(work, { recursive: true }))

const io = { env: {}, signal: new AbortController().signal }

/** Builds an extension with one file for an architecture. */
async function built(name: string, arch: string): Promise<void> {
  const folder = join(work, name)
  mkdirSync(join(folder, 'rootfs/usr/local/bin'), { recursive: true })
  writeFileSync(join(folder, 'rootfs/usr/local/bin', name), arch)
  const metadata = { name, version: '1.0', author: 'me', description: 'one file', release: '>= 1.13.0' }
  await buildExtension({ folder, metadata, packages: [], arch, output: join(images, `${name}.tar`) })
}

test('an extension is offered for the architectures that its image has, and unpacked for the one of the release', async () => {
  await built('ours', 'amd64')
  await built('theirs', 'arm64')
  const offered = await offeredExtensions(io, images, silent)
  const version = 'v1.13.100'
  expect(
    offered.map((each) => [each.metadata.name, each.unfit({ version, arch: 'amd64' }), each.unfit({ version, arch: 'arm64' })]),
  ).toEqual([
    ['ours', undefined, `extension "${join(images, 'ours.tar')}": it has nothing for arm64`],
    ['theirs', `extension "${join(images, 'theirs.tar')}": it has nothing for amd64`, undefined],
  ])
  const files = await offered[1]?.unpack(join(work, 'unpacked'), 'arm64')
  expect(files?.map(({ path }) => path)).toContain('/usr/local/bin/theirs')
  await expect(offered[1]?.unpack(join(work, 'again'), 'amd64')).rejects.toThrow('it has nothing for amd64')
})
