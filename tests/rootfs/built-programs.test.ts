/** What is built has its place in the image and in the SBOM without being named again. */
import { afterAll, expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { addPrograms, type BuiltProgram, fileOfProgram, programNamed, programParts } from '../../rootfs/build/built-programs.ts'
import type { GoRecipe } from '../../rootfs/build/go.ts'
import { goPrograms } from '../../rootfs/build/go-recipes.ts'
import { kubernetesReleases } from '../../rootfs/build/kubernetes.ts'
import { MissingError } from '../../rootfs/build/present.ts'
import { sbomOf } from '../../rootfs/sbom.ts'
import { Tree } from '../../src/programs/factory/root/tree.ts'

const folder = mkdtempSync(join(tmpdir(), 'ichor-programs-'))
afterAll(() => rmSync(folder, { recursive: true }))

function built(recipe: GoRecipe): BuiltProgram {
  const { name, version, image } = recipe
  const program = { name, version, image, recipe, folder: join(folder, name) }
  mkdirSync(program.folder, { recursive: true })
  writeFileSync(fileOfProgram(program), `the program ${name}`)
  writeFileSync(join(program.folder, 'modules.txt'), 'example.org/module v1.2.3\n')
  return program
}

const recipe: GoRecipe = {
  name: 'news',
  version: '4.5.6',
  module: 'runc',
  programs: { news: '.' },
  image: { path: '/usr/bin/news', links: ['paper'], hardLinks: ['letter'] },
}

test('a new recipe is in the tree and in the SBOM by itself', async () => {
  const programs = [...goPrograms(kubernetesReleases[0]), recipe].map(built)
  const tree = new Tree()
  addPrograms(tree, programs)
  expect(tree.get('/usr/bin/news')).toMatchObject({ part: 'news', mode: 0o755, source: join(folder, 'news/news') })
  expect(tree.get('/usr/bin/paper')).toMatchObject({ type: 'symlink', target: 'news' })
  expect(tree.get('/usr/bin/letter')).toMatchObject({ type: 'file', linkTo: '/usr/bin/news' })
  const withoutC = programs.filter((program) => !program.recipe?.c)
  const { packages } = sbomOf('1.0.0', '2026-01-02T03:04:05Z', await programParts(withoutC))
  const names = packages.map(({ name, versionInfo }) => `${name} ${versionInfo}`)
  expect(names).toEqual(expect.arrayContaining(['news 4.5.6', 'example.org/module v1.2.3']))
  // One that only the build uses is in neither.
  expect(tree.entries().some(({ part }) => part === 'kubectl')).toBe(false)
  expect(packages.some(({ name }) => name === 'kubectl')).toBe(false)
})

test('the assembly of the tree names no program', () => {
  const text = readFileSync(join(import.meta.dir, '../../rootfs/build/assemble.ts'), 'utf8')
  for (const name of [...goPrograms(kubernetesReleases[0]).map((each) => each.name), 'pause']) expect(text).not.toContain(`'${name}'`)
})

test('Kubernetes has a link for every name that its source answers to', () => {
  const [kube] = goPrograms(kubernetesReleases[0])
  expect(kube?.image?.links).toEqual(
    'coredns etcd etcdutl flanneld kube-apiserver kube-controller-manager kube-proxy kube-scheduler kubelet'.split(' '),
  )
})

test('a program that is not built has a name in the message', () => {
  expect(() => programNamed([], 'runc')).toThrow(new MissingError('program "runc" is missing'))
})
