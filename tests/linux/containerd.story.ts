/** Images and containers on a real containerd: the images of the root file system, pulled from registryd and provided as folders. */

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { makeEndingFifo } from '../../src/linux/fs/fifo.ts'
import * as files from '../../src/linux/fs/files.ts'
import * as mount from '../../src/linux/fs/mount.ts'
import { hierarchy } from '../../src/linux/process/cgroup.ts'
import type { ImageRecord, ImageTable } from '../../src/oci/image.ts'
import { layerSegments } from '../../src/oci/layer.ts'
import { holdPort, serveRegistry } from '../../src/os/cri/registryd.ts'
import { newCA } from '../../src/pki/certificate.ts'
import { imageContents, listImages, pullImage, removeImage } from '../../src/supervise/containerd/images.ts'
import { type OwnImage, provideImage } from '../../src/supervise/containerd/own-images.ts'
import { ociSpec } from '../../src/supervise/containerd/spec.ts'
import { container } from '../../src/supervise/runner/container.ts'
import { servePart } from '../support/private-registry.ts'
import { ContainerdDaemon } from './containerd-daemon.ts'

const containerd = new ContainerdDaemon()
const { folder, root, client: daemon, supervisor } = containerd
const cgroupVersion = hierarchy().version
let table: ImageTable

beforeAll(async () => {
  await containerd.start('rootfs.sqsh')
  table = JSON.parse(files.readText(`${root}/usr/share/ichor/images.json`))
})

afterAll(() => containerd.stop())

const recordOf = (name: string): ImageRecord => table.images.find(({ reference }) => reference.includes(`/${name}:`))!

/** The image as folders of the mounted root. */
function folders({ reference, layers, ...record }: ImageRecord): OwnImage {
  const shown = layers.map(({ digest }) => ({ digest, folder: `${root}/usr/share/ichor/layers/${digest.slice('sha256:'.length)}` }))
  return { name: reference, ...record, layers: shown }
}

async function show(source: string, target: string): Promise<void> {
  if (!mount.mountAt(target)) mount.bind(source, target, { flags: ['ro'] })
}

/** Runs the image's program with these arguments and returns its output. */
async function output(id: string, reference: string, args: string[]): Promise<string> {
  supervisor.load({
    id,
    dependsOn: ['containerd'],
    restart: 'never',
    cgroup: `/ichor-story-${id}`,
    runner: container({
      containerd: daemon,
      namespace: 'system',
      root: { image: reference },
      makePipe: (name) => makeEndingFifo(join(folder, `${name}.pipe`)),
      spec: ({ definition, oom }, image) =>
        ociSpec({ args: [...image!.entrypoint, ...args], env: image!.env, oom, cgroup: definition.cgroup, cgroupVersion }),
    }),
  })
  supervisor.start(id)
  await supervisor.until(id, 'up')
  await supervisor.until(id, 'down', AbortSignal.timeout(60_000))
  expect(supervisor.get(id)).toMatchObject({ state: 'Finished' })
  return supervisor.logs.get(id)!.toString()
}

test('an image is pulled from registryd, byte for byte as in the root file system, and removed again', async () => {
  const record = recordOf('etcd')
  const served = { images: [record] }
  const own = { ...files, readSlice: (path: string, offset: number, length: number) => files.readSlice(root + path, offset, length) }
  const registry = holdPort(0)
  serveRegistry(registry, { images: served, files: own, layout: layerSegments })
  mkdirSync(join(folder, 'hosts/registry.k8s.io'), { recursive: true })
  const hosts = `server = "https://registry.k8s.io"\n[host."http://127.0.0.1:${registry.port}"]\ncapabilities = ["pull", "resolve"]\n`
  writeFileSync(join(folder, 'hosts/registry.k8s.io/hosts.toml'), hosts)
  const events = new Set<string>()
  const channel = daemon.in('pulled')
  await pullImage(channel, record.reference, { hostsDir: join(folder, 'hosts'), progress: ({ event }) => events.add(event) })
  await registry.close()
  expect(events).toContain('complete')
  expect(await imageContents(channel, record.reference)).toMatchObject({ digest: record.digest, entrypoint: ['/usr/local/bin/etcd'] })
  await removeImage(channel, record.reference)
  expect(await listImages(channel)).toEqual([])
})

test('a registry whose certificate is not trusted is the reason of a failed pull, behind a registryd that does not have the image', async () => {
  const registryd = holdPort(0)
  serveRegistry(registryd, { images: { images: [] }, files: { readSlice: async () => new Uint8Array() }, layout: layerSegments })
  const registry = servePart('127.0.0.1', newCA({ kind: 'ecdsa', subject: { commonName: 'company' } }), 'registry.test')
  const pulled = async (name: string, server: string) => {
    mkdirSync(join(folder, 'hosts', name), { recursive: true })
    const hosts = `server = "${server}"\n[host."http://127.0.0.1:${registryd.port}"]\ncapabilities = ["pull", "resolve"]\n`
    writeFileSync(join(folder, 'hosts', name, 'hosts.toml'), hosts)
    return pullImage(daemon.in('refused'), `${name}/story/part:1`, { hostsDir: join(folder, 'hosts') })
  }
  await expect(pulled('untrusted.test', `https://127.0.0.1:${registry.port}`)).rejects.toThrow('certificate signed by unknown authority')
  await expect(pulled('nowhere.test', `http://127.0.0.1:${registryd.port}`)).rejects.toThrow('not found')
  await registry.close()
  await registryd.close()
})

test('an image of the root file system is provided without copying, and runs', async () => {
  const record = recordOf('kubelet')
  await provideImage(daemon.in('system'), folders(record), show)
  expect(await imageContents(daemon.in('system'), record.reference)).toMatchObject({ digest: record.digest })
  expect(await output('kubelet', record.reference, ['--version'])).toContain('Kubernetes v1.')
})

test('after a restart of the machine, when the mounts are gone, it is provided again', async () => {
  const record = recordOf('kubelet')
  const shown = mount.mounts().filter(({ target }) => target.startsWith(`${folder}/lib`))
  expect(shown.length).toBe(record.layers.length)
  for (const { target } of shown) mount.umount(target)
  await provideImage(daemon.in('system'), folders(record), show)
  expect(mount.mounts().filter(({ target }) => target.startsWith(`${folder}/lib`))).toHaveLength(record.layers.length)
  expect(await output('again', record.reference, ['--version'])).toContain('Kubernetes v1.')
})
