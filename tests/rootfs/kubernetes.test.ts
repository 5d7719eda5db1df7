/** The releases of Kubernetes that can be built, and the images of one as files that are served. */
import { afterAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { UsageError } from '../../rootfs/build/failure.ts'
import { kube, kubectl, releases } from '../../rootfs/build/go-recipes.ts'
import { kubernetesRelease, kubernetesReleases } from '../../rootfs/build/kubernetes.ts'
import { writeImages } from '../../rootfs/build/kubernetes-images.ts'
import { imageOptions } from '../../rootfs/image/options.ts'
import { type ImagePlan, imagePlans, kubernetesImagePlans, makeImages } from '../../rootfs/images.ts'
import { formatReference, parseReference } from '../../src/oci/reference.ts'
import { RemoteRegistry } from '../../src/oci/remote-registry.ts'
import { kubernetesImages } from '../../src/os/config/generate/versions.ts'
import { knownMinors, settingsOf } from '../../src/os/k8s/documents/settings.ts'
import { defaultImages, kubernetesVersion } from '../../src/os/k8s/images.ts'
import { Tree } from '../../src/programs/factory/root/tree.ts'
import { serveCache } from '../../src/programs/talosctl/image-cache/serve.ts'

const folder = mkdtempSync(join(tmpdir(), 'ichor-kubernetes-'))
afterAll(() => rmSync(folder, { recursive: true }))

test('the newest is built unless another is requested, with or without its "v"', () => {
  expect(kubernetesRelease(undefined).version).toBe(kubernetesVersion)
  for (const release of kubernetesReleases) {
    expect(kubernetesRelease(`v${release.version}`)).toBe(release)
    expect(imageOptions(['--kubernetes', release.version])?.kubernetes).toBe(release)
  }
})

test.each(['v1.35.99', 'v1.33.0', 'latest', '', 'v1.35', 'vv1.36.3'])('"%s" is refused with what is possible', (requested) => {
  const possible = kubernetesReleases.map(({ version }) => `v${version}`).join(', ')
  for (const refused of [() => kubernetesRelease(requested), () => imageOptions([`--kubernetes=${requested}`])]) {
    expect(refused).toThrow(UsageError)
    expect(refused).toThrow(new UsageError(`--kubernetes "${requested}": must be one of ${possible}`))
  }
})

test('they are three minors in a row, whose settings are recorded', () => {
  const minors = kubernetesReleases.map(({ version }) => Number(version.split('.')[1]))
  const [newest = 0] = minors
  expect(minors).toEqual([newest, newest - 1, newest - 2])
  expect([...knownMinors].sort().reverse()).toEqual(minors.map((minor) => `1.${minor}`))
  for (const { version } of kubernetesReleases)
    expect(Object.fromEntries(settingsOf(version)!.versions)).toEqual({ kubernetes: version, etcd: releases.etcd })
})

describe.each(kubernetesReleases.map((release) => [release.version, release] as const))('Kubernetes %s', (version, release) => {
  const text = readFileSync(join(import.meta.dir, `../../rootfs/${release.module}/go.mod`), 'utf8')
  const sums = readFileSync(join(import.meta.dir, `../../rootfs/${release.module}/go.sum`), 'utf8')
  const staging = version.replace(/^1\./, 'v0.')

  test('is pinned with the programs beside it', () => {
    const required = Object.fromEntries([...text.matchAll(/^\t(\S+) (v\S+)$/gm)].map(([, path, each]) => [path, each]))
    expect(required).toMatchObject({
      'k8s.io/kubernetes': `v${version}`,
      'k8s.io/component-base': staging,
      'k8s.io/kubectl': staging,
      'go.etcd.io/etcd/server/v3': `v${releases.etcd}`,
      'github.com/coredns/coredns': `v${release.coredns}`,
      'github.com/flannel-io/flannel': `v${releases.flannel}`,
    })
    const replaced = [...text.matchAll(/^\t(\S+) => (\S+) (\S+)$/gm)]
    expect(replaced.length).toBeGreaterThan(25)
    expect(replaced.filter(([, from, to, each]) => from !== to || each !== staging)).toEqual([])
    expect(sums).toContain(`k8s.io/kubernetes v${version} h1:`)
  })

  test('is stamped into its programs', () => {
    for (const recipe of [kube(release), kubectl(release)]) {
      expect(recipe.module).toBe(release.module)
      expect(recipe.settings).toMatchObject({
        'k8s.io/component-base/version.gitVersion': `v${version}`,
        'k8s.io/component-base/version.gitMinor': version.split('.')[1],
        'k8s.io/client-go/pkg/version.gitVersion': `v${version}`,
      })
    }
  })

  test('has the images that a configuration for it names', () => {
    const own = kubernetesImagePlans(version).map(({ reference }) => reference)
    expect(own.toSorted()).toEqual(Object.values(kubernetesImages(version)).toSorted())
    const inside = imagePlans(release).map(({ reference }) => reference)
    const { etcd, flannel, pause } = defaultImages
    const coreDNS = `registry.k8s.io/coredns/coredns:v${release.coredns}`
    if (version === kubernetesVersion) expect(coreDNS).toBe(defaultImages.coreDNS)
    expect(inside.toSorted()).toEqual([...own, etcd, coreDNS, flannel, pause].toSorted())
  })
})

test('images are written as files that are served as a registry, each layer once', async () => {
  const tree = new Tree()
  tree.text('kube', '/usr/bin/kube', 'program', 0o755)
  const shared = { take: ['/usr/bin/kube'] }
  const plans: ImagePlan[] = ['a', 'b'].map((name) => ({
    reference: `registry.test/${name}:v1`,
    layers: [shared, { links: { [name]: 'usr/bin/kube' } }],
    entrypoint: [`/${name}`],
  }))
  const { images } = await makeImages(tree, plans, () => [])
  await writeImages(tree, images, folder)
  const served = serveCache({ folder, hostname: '127.0.0.1', port: 0, domains: ['registry.test'] })
  try {
    const registry = new RemoteRegistry({ hosts: () => [{ url: served.url }] })
    for (const { reference, digest, manifest, config, layers } of images) {
      const name = parseReference(reference)
      const got = await registry.manifest(name)
      expect(got.digest).toBe(digest)
      expect(Buffer.from(got.bytes).toString()).toBe(manifest)
      for (const blob of [config, ...layers]) {
        const response = await fetch(`${served.url}/v2/${name.repository}/blobs/${blob.digest}`)
        const bytes = new Uint8Array(await response.arrayBuffer())
        expect(`sha256:${new Bun.CryptoHasher('sha256').update(bytes).digest('hex')}`).toBe(blob.digest)
        expect(bytes.length).toBe(blob.size)
      }
      expect(formatReference(name)).toBe(reference)
    }
    expect([...new Bun.Glob('blob/*').scanSync(folder)]).toHaveLength(5)
  } finally {
    await served.close()
  }
})
