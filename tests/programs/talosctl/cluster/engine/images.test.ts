import { afterEach, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Engine } from '../../../../../src/programs/talosctl/cluster/engine/client.ts'
import { defaultImage, provideImage, withTag } from '../../../../../src/programs/talosctl/cluster/engine/images.ts'
import { EngineDaemon } from '../../../../support/engine/daemon.ts'

const signal = new AbortController().signal
const folder = mkdtempSync(join(tmpdir(), 'images-'))
let daemon: EngineDaemon | undefined
afterEach(() => {
  daemon?.stop()
  rmSync(join(folder, 'ichor-node-amd64.tar'), { force: true })
})

async function provide(named: string | undefined, options: ConstructorParameters<typeof EngineDaemon>[0] = {}) {
  daemon = new EngineDaemon(options)
  const progress: string[] = []
  const image = await provideImage(await Engine.open(daemon.socket, signal), { named, folder, report: (detail) => progress.push(detail) })
  return { image, progress, sent: daemon.calls.map(({ method, path }) => `${method} ${path}`) }
}

test('an image that the engine has is taken as it is, with the release of Kubernetes that it names', async () => {
  const { image, sent } = await provide(undefined, { images: { [defaultImage]: { 'dev.ichor.kubernetes.version': '1.36.3' } } })
  expect(image).toEqual({ reference: defaultImage, kubernetes: '1.36.3' })
  expect(sent).toEqual([`GET /images/${defaultImage.replace(':', '%3A')}/json`])
  expect((await provide('reg.test:5000/team/node', { images: { 'reg.test:5000/team/node:latest': {} } })).image).toEqual({
    reference: 'reg.test:5000/team/node:latest',
    kubernetes: undefined,
  })
})

test('a file is loaded, by its name or because it lies beside this program', async () => {
  const file = join(folder, 'ichor-node-amd64.tar')
  writeFileSync(file, 'an archive')
  const named = await provide(file, { loads: 'localhost/ichor-node:v9' })
  expect(named.image.reference).toBe('localhost/ichor-node:v9')
  expect(named.progress).toEqual([`load ${file}`])
  expect(daemon?.bodies('/images/load')).toEqual(['an archive'.length])
  daemon?.stop()
  expect((await provide(undefined, { loads: 'docker.io/library/ichor-node:v9' })).image.reference).toBe('docker.io/library/ichor-node:v9')
  daemon?.stop()
  await expect(provide(file)).rejects.toThrow(/^load ".*": payload does not match any of the supported image formats: name an archive/)
})

test('an image of a registry is pulled, with progress', async () => {
  const { image, progress } = await provide('reg.test/node:v1', { registry: ['reg.test/node:v1'] })
  expect(image.reference).toBe('reg.test/node:v1')
  expect(progress).toEqual(['pull reg.test/node:v1: Pulling reg.test/node:v1', 'pull reg.test/node:v1: abc: Downloading 25%'])
  daemon?.stop()
  await expect(provide('reg.test/none')).rejects.toThrow(
    /^pull "reg\.test\/none:latest": manifest for reg\.test\/none:latest not found: name an image that the registry has/,
  )
})

test('nothing is pulled for a name that is a file, or when none is given', async () => {
  await expect(provide(undefined)).rejects.toThrow(
    `the container engine has no image "${defaultImage}": build it with "./mkimage.sh --only oci"`,
  )
  expect(daemon?.calls.map(({ path }) => path)).not.toContain('/images/create')
  daemon?.stop()
  await expect(provide('./none.tar')).rejects.toThrow('--image "./none.tar": there is no such file')
})

test.each([
  ['node', 'node:latest'],
  ['reg.test:5000/node', 'reg.test:5000/node:latest'],
  ['reg.test:5000/node:v1', 'reg.test:5000/node:v1'],
  ['node@sha256:abc', 'node@sha256:abc'],
])('%s is %s', (name, reference) => {
  expect(withTag(name)).toBe(reference)
})
