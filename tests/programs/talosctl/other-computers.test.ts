import { expect, test } from 'bun:test'
import { join } from 'node:path'

const source = join(import.meta.dir, '../../../src/programs/talosctl')

/** The modules that are evaluated when this one is, by static imports. */
async function evaluated(entry: string): Promise<Set<string>> {
  const transpiler = new Bun.Transpiler({ loader: 'ts' })
  const found = new Set<string>()
  const visit = async (path: string) => {
    if (found.has(path)) return
    found.add(path)
    const imports = transpiler.scanImports(await Bun.file(path).text()).filter(({ kind }) => kind === 'import-statement')
    for (const { path: name } of imports) {
      if (name.startsWith('.')) {
        if (name.endsWith('.ts')) await visit(join(path, '..', name))
      } else found.add(name)
    }
  }
  await visit(entry)
  return found
}

test('no command opens the Linux kernel before it is known that there is one', async () => {
  const entries = [join(source, 'talosctl.ts'), ...new Bun.Glob('commands/**/*.ts').scanSync({ cwd: source, absolute: true })]
  expect(entries.length).toBeGreaterThan(60)
  const opening: string[] = []
  for (const entry of entries) {
    const modules = await evaluated(entry)
    if (modules.has('bun:ffi')) opening.push(entry)
  }
  expect(opening).toEqual([])
})

test('the program and its commands bundle for macOS', async () => {
  const built = await Bun.build({
    entrypoints: [join(source, 'talosctl.ts')],
    target: 'bun',
    define: { 'process.platform': '"darwin"' },
    throw: false,
  })
  expect(built.logs.filter(({ level }) => level === 'error')).toEqual([])
  expect(built.success).toBe(true)
})
