/**
 * The images of a release of Kubernetes as a folder of plain files, for nodes whose root file system has another release:
 * `talosctl image cache-serve` and every web server deliver it as a registry, and machines read it as an image cache.
 */
import { createWriteStream, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import packageJson from '../../package.json'
import type { ImageRecord } from '../../src/oci/image.ts'
import { blobFile, manifestFile } from '../../src/oci/image-cache.ts'
import { parseReference } from '../../src/oci/reference.ts'
import { Tree } from '../../src/programs/factory/root/tree.ts'
import { librariesOf } from '../debian/files.ts'
import { kubernetesImagePlans, layerBytes, makeImages } from '../images.ts'
import { addPackages, lockPath } from './assemble.ts'
import { addBase } from './base.ts'
import { dist } from './binary.ts'
import { hashOf } from './cache.ts'
import { installDependencies } from './dependencies.ts'
import { exclusive } from './exclusive.ts'
import { buildGo } from './go.ts'
import { kube } from './go-recipes.ts'
import { prepareHost } from './host.ts'
import type { KubernetesRelease } from './kubernetes.ts'
import { recipes } from './rootfs.ts'

/** Where the images of a release go. */
export const imagesFolder = ({ version }: KubernetesRelease): string => join(dist, `kubernetes-images-v${version}`)

/** Builds the release if it is not in the cache, and writes its images unless they are there; returns the folder. */
export async function buildKubernetesImages(release: KubernetesRelease): Promise<string> {
  await installDependencies()
  await prepareHost()
  const { folder: program } = await exclusive(`kube-${release.version}`, () => buildGo(kube(release)))
  const folder = imagesFolder(release)
  const stamp = join(folder, '.inputs')
  const inputs = hashOf({ program, lock: readFileSync(lockPath, 'utf8'), recipes: recipes() })
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === inputs) return folder
  const tree = new Tree()
  addBase(tree, packageJson.version)
  tree.file('kube', '/usr/bin/kube', join(program, 'kube'), 0o755)
  await addPackages(tree, [])
  const { images } = await makeImages(tree, kubernetesImagePlans(release.version), (path) => librariesOf(tree, path))
  const unfinished = `${folder}.${process.pid}`
  try {
    await writeImages(tree, images, unfinished)
    writeFileSync(join(unfinished, '.inputs'), inputs)
    rmSync(folder, { recursive: true, force: true })
    renameSync(unfinished, folder)
  } finally {
    rmSync(unfinished, { recursive: true, force: true })
  }
  return folder
}

/** Writes manifests by name and digest, and every configuration and layer once. */
export async function writeImages(tree: Tree, images: readonly ImageRecord[], folder: string): Promise<void> {
  const place = (file: string) => {
    const path = join(folder, file)
    mkdirSync(dirname(path), { recursive: true })
    return path
  }
  for (const { reference, digest, manifest, config, layers } of images) {
    const { domain, repository, tag = 'latest' } = parseReference(reference)
    for (const name of [tag, digest]) writeFileSync(place(manifestFile(domain, repository, name)), manifest)
    writeFileSync(place(blobFile(config.digest)), config.text)
    for (const layer of layers) {
      const path = place(blobFile(layer.digest))
      if (!existsSync(path)) await pipeline(layerBytes(tree, layer.entries), createWriteStream(path))
    }
  }
}
