/**
 * The flags, feature gates and fields of the Kubernetes programs of each release that can be built, and of etcd, read from their
 * packages: `bun run settings` writes src/os/k8s/documents/settings/<minor>.txt, which are checked in. Run it when a release in
 * build/kubernetes.ts or build/go-recipes.ts changes.
 */
import { cp, mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { buildGo, type GoRecipe } from './build/go.ts'
import { kube, releases } from './build/go-recipes.ts'
import { type KubernetesRelease, kubernetesReleases } from './build/kubernetes.ts'
import { run } from './build/run.ts'

const source = join(import.meta.dir, 'settings/settings.go')

/** Inside the module of the programs, whose packages it inspects. */
const recipe = async (release: KubernetesRelease): Promise<GoRecipe> => ({
  ...kube(release),
  name: 'settings',
  programs: { settings: './settings' },
  prepare: {
    version: Bun.hash.crc32(await Bun.file(source).bytes()),
    async apply(folder) {
      await mkdir(join(folder, 'settings'))
      await cp(source, join(folder, 'settings/settings.go'))
    },
  },
})

for (const release of kubernetesReleases) {
  const { folder } = await buildGo(await recipe(release))
  const text = await run([join(folder, 'settings')])
  const head = `# Flags, feature gates and fields of the built-in programs. Made by \`bun run settings\`; do not edit.
versions
  kubernetes ${release.version}
  etcd ${releases.etcd}`
  const path = join(import.meta.dir, `../src/os/k8s/documents/settings/${release.version.replace(/\.\d+$/, '')}.txt`)
  await Bun.write(path, `${head}\n${text.trimEnd()}\n`)
  console.log(path)
}
