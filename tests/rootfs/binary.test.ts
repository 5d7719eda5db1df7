import { expect, test } from 'bun:test'
import { lstatSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { dependencies } from '../../package.json'
import { bundledPackages, checkRuntime, placeFile } from '../../rootfs/build/binary.ts'
import { binaryPart } from '../../rootfs/build/sbom-parts.ts'
import { programs } from '../../src/program-table.ts'

test('only the locked runtime compiles the binary', () => {
  expect(() => checkRuntime('1.0.0')).toThrow('this is Bun 1.0.0, the binary is compiled by')
  checkRuntime()
})

/** Packages inside the binary. */
const bundled = [
  '@marcbachmann/cel-js',
  '@noble/ciphers',
  '@noble/hashes',
  '@sigstore/bundle',
  '@sigstore/core',
  '@sigstore/protobuf-specs',
  '@sigstore/verify',
  'commander',
  'valibot',
  'yaml',
]

test('the SBOM of the binary lists the packages that the bundler puts into it, and so does docs/architecture.md', async () => {
  const page = readFileSync(join(import.meta.dir, '../../docs/architecture.md'), 'utf8')
  // @noble/curves is a dependency that no code uses yet.
  const packages = await bundledPackages()
  expect(packages).toEqual(bundled)
  const { contains = [] } = await binaryPart(import.meta.path, '1.0.0', packages)
  expect(contains.map(({ name }) => name)).toEqual([...bundled, 'bun'].sort())
  expect(packages.filter((name) => !page.includes(`\`${name}\``))).toEqual([])
  expect(contains[0]).toMatchObject({ version: dependencies['@marcbachmann/cel-js'], purl: 'pkg:npm/%40marcbachmann/cel-js@8.0.0' })
})

test('a link in the root file system is made for programs of the binary only', async () => {
  const { addBinary } = await import('../../rootfs/build/base.ts')
  const links: string[] = []
  addBinary({ file() {}, link: (_: string, path: string) => links.push(path) } as never, '/nowhere')
  expect(links.sort()).toEqual(
    Object.entries(programs)
      .flatMap(([name, { folder }]) => (folder ? [`${folder}/${name}`] : []))
      .sort(),
  )
})

test('a program beside the binary is a file, which can be copied elsewhere, and is replaced', () => {
  const folder = mkdtempSync(join(tmpdir(), 'place-'))
  const path = join(folder, 'kubectl')
  for (const content of ['one', 'two', 'two']) {
    writeFileSync(join(folder, `part-${content}`), content)
    placeFile(join(folder, `part-${content}`), path)
    expect(lstatSync(path).isFile()).toBe(true)
    expect(readFileSync(path, 'utf8')).toBe(content)
  }
  expect(readdirSync(folder).sort()).toEqual(['kubectl', 'part-one', 'part-two'])
  rmSync(folder, { recursive: true })
})
