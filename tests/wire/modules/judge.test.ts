/** kmod's programs as judges: depmod(8) makes equal tables of equal modules, and modprobe(8) and modinfo(8) read those made here. */
import { afterAll, describe, expect, test } from 'bun:test'
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { cacheFolder } from '../../../rootfs/build/cache.ts'
import { parseModule } from '../../../src/wire/modules/module-file.ts'
import { moduleTables } from '../../../src/wire/modules/tables.ts'
import { moduleName } from '../../../src/wire/modules-dep.ts'
import { builtModule, family, order } from './built-module.ts'

const program = (name: string) => Bun.which(name, { PATH: `${process.env.PATH}:/usr/sbin:/sbin` })
const [depmod, modprobe, modinfo] = ['depmod', 'modprobe', 'modinfo'].map(program)
const parts = join(cacheFolder, 'parts')
/** Modules of Debian's kernel, as `mkimage.sh` unpacks them. */
const [debian] = [...new Bun.Glob('debian-linux-image-*/files/lib/modules/*/modules.order').scanSync({ cwd: parts })]
const folder = mkdtempSync(join(tmpdir(), 'modules-judge-'))
afterAll(() => rmSync(folder, { recursive: true }))

async function output(command: readonly (string | null | undefined)[]): Promise<string> {
  await using child = Bun.spawn(command.map(String), { stdout: 'pipe', stderr: 'ignore' })
  const text = await new Response(child.stdout).text()
  expect([command[0], await child.exited]).toEqual([command[0], 0])
  return text
}

const release = '6.1.0-judged'

/** A root whose kernel has the modules of a folder, and no tables yet. */
function rootWith(name: string, source: string): { root: string; below: string } {
  const root = join(folder, `root-${name}`)
  const below = join(root, 'lib/modules', release)
  mkdirSync(below, { recursive: true })
  symlinkSync(join(source, 'kernel'), join(below, 'kernel'))
  for (const each of ['modules.order', 'modules.builtin', 'modules.builtin.modinfo']) cpSync(join(source, each), join(below, each))
  return { root, below }
}

function writeFamily(): string {
  const source = join(folder, 'family')
  for (const [path, built] of Object.entries(family)) {
    mkdirSync(join(source, dirname(path)), { recursive: true })
    writeFileSync(join(source, path), builtModule(built))
  }
  writeFileSync(join(source, 'modules.order'), order)
  for (const name of ['modules.builtin', 'modules.builtin.modinfo']) writeFileSync(join(source, name), '')
  return source
}

const sorted = (bytes: Uint8Array) => Buffer.from(bytes).toString('latin1').split('\n').sort()

/** The order of symbols in the text is that of depmod's hash table; nothing reads the text where there is the binary form. */
const unordered = 'modules.symbols'

async function judge(name: string, source: string): Promise<void> {
  const { root, below } = rootWith(name, source)
  const paths = (readdirSync(join(source, 'kernel'), { recursive: true }) as string[]).filter((path) => path.endsWith('.ko')).sort()
  const modules = paths.map((path) => ({
    path: `kernel/${path}`,
    name: moduleName(path),
    file: parseModule(readFileSync(join(source, 'kernel', path))),
  }))
  const names = modules.map((module) => module.name)
  const answers = () => output([modprobe, '--show-depends', '--dirname', root, '--set-version', release, '--all', ...names])
  await output([depmod, '-b', root, release])
  const expected = await answers()
  for (const [table, bytes] of moduleTables(modules, readFileSync(join(below, 'modules.order'), 'utf8'))) {
    const theirs = readFileSync(join(below, table))
    if (table === unordered) expect(sorted(bytes)).toEqual(sorted(theirs))
    else expect([table, theirs.equals(bytes)]).toEqual([table, true])
    writeFileSync(join(below, table), bytes)
  }
  expect(await answers()).toBe(expected)
  expect(expected.split('\n').length).toBeGreaterThan(names.length)
  for (const { name: module, file } of modules.filter((_, at) => at % 97 === 0)) {
    const shown = await output([modinfo, '--basedir', root, '--set-version', release, '--field', 'alias', module])
    expect(shown.split('\n').filter(Boolean)).toEqual(file.info.filter(([key]) => key === 'alias').map(([, value]) => value))
  }
}

describe.skipIf(!depmod || !modprobe || !modinfo)('depmod, modprobe and modinfo', () => {
  test('agree on a few modules', () => judge('few', writeFamily()), 30_000)
  test.skipIf(!debian)("agree on the modules of Debian's kernel", () => judge('debian', dirname(join(parts, debian ?? ''))), 120_000)
})
