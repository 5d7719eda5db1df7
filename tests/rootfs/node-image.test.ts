import { expect, test } from 'bun:test'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { hashOf } from '../../rootfs/build/cache.ts'
import { archiveTree, treeSegments } from '../../rootfs/image/container/node-image.ts'
import { layerSegments } from '../../src/oci/layer.ts'
import { bytesOf } from '../../src/oci/segments.ts'
import { Tree } from '../../src/programs/factory/root/tree.ts'
import { plainLayer, writeImageArchive } from '../../src/programs/talosctl/archive/image-archive.ts'
import { tarEntries } from '../../src/wire/tar/read.ts'

function sample(): Tree {
  const tree = new Tree()
  tree.text('base', '/usr/share/zeta', 'last')
  tree.add({ path: '/usr/bin/alias', type: 'file', mode: 0o755, linkTo: '/usr/share/zeta', part: 'base' })
  tree.link('base', '/sbin', 'usr/sbin')
  tree.text('base', '/usr/etc/in-container', '')
  return tree
}

async function members(bytes: AsyncIterable<Uint8Array>): Promise<Map<string, Buffer>> {
  const found = new Map<string, Buffer>()
  for await (const { name, content } of tarEntries(bytes)) found.set(name.replace(/\/$/, ''), Buffer.concat(await Array.fromAsync(content)))
  return found
}

async function archive(write: (path: string) => Promise<void>): Promise<Buffer> {
  const folder = mkdtempSync(join(tmpdir(), 'node-image-'))
  try {
    await write(join(folder, 'image.tar'))
    return readFileSync(join(folder, 'image.tar'))
  } finally {
    rmSync(folder, { recursive: true })
  }
}

async function* whole(bytes: Uint8Array) {
  yield bytes
}

test('a tree becomes a layer whose hard links come behind what they lead to', async () => {
  const entries = await Array.fromAsync(tarEntries(bytesOf(treeSegments(sample()))), async ({ name, type, target, content }) => {
    await Array.fromAsync(content)
    return [name.replace(/\/$/, ''), type, target || undefined]
  })
  expect(entries).toEqual([
    ['sbin', 'symlink', 'usr/sbin'],
    ['usr', 'directory', undefined],
    ['usr/bin', 'directory', undefined],
    ['usr/etc', 'directory', undefined],
    ['usr/etc/in-container', 'file', undefined],
    ['usr/share', 'directory', undefined],
    ['usr/share/zeta', 'file', undefined],
    ['usr/bin/alias', 'hardlink', 'usr/share/zeta'],
  ])
})

test('the image of the system is an image layout and an archive of Docker over the same blobs, the same bytes each time', async () => {
  const make = () => archive((path) => archiveTree(path, sample(), { kubernetes: '1.36.3', level: 1 }))
  const first = await make()
  expect(hashOf(await make())).toBe(hashOf(first))
  const files = await members(whole(first))
  const json = (path: string) => JSON.parse((files.get(path) ?? Buffer.from('{}')).toString())
  const [described] = json('index.json').manifests
  expect(described.annotations['io.containerd.image.name']).toMatch(/^docker\.io\/library\/ichor-node:v/)
  const manifest = json(`blobs/${described.digest.replace(':', '/')}`)
  const config = json(`blobs/${manifest.config.digest.replace(':', '/')}`)
  const layer = files.get(`blobs/${manifest.layers[0].digest.replace(':', '/')}`) ?? Buffer.alloc(0)
  expect(config.config).toMatchObject({ Entrypoint: ['/sbin/init'], StopSignal: 'SIGTERM' })
  expect(config.config.Labels['dev.ichor.kubernetes.version']).toBe('1.36.3')
  expect(config.config.Labels).toEqual(manifest.annotations)
  expect(config.rootfs.diff_ids).toEqual([`sha256:${hashOf(Bun.gunzipSync(new Uint8Array(layer)))}`])
  expect(json('manifest.json')).toEqual([
    {
      Config: `blobs/${manifest.config.digest.replace(':', '/')}`,
      RepoTags: [described.annotations['io.containerd.image.name'].replace('docker.io/library/', '')],
      Layers: [`blobs/${manifest.layers[0].digest.replace(':', '/')}`],
    },
  ])
})

test('an image without a name is an image layout alone', async () => {
  const layer = await plainLayer(layerSegments([{ path: 'usr', type: 'dir', mode: 0o755 }]))
  const bytes = await archive((path) =>
    writeImageArchive(path, { arch: 'amd64', layers: [layer], config: { config: {} }, annotations: { version: 'v1' } }),
  )
  const files = await members(whole(bytes))
  expect([...files.keys()].filter((path) => !path.startsWith('blobs'))).toEqual(['oci-layout', 'index.json'])
})
