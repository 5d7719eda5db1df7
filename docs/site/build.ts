/**
 * Builds the documentation site into dist/site: `bun run docs:site [--base /path/]`.
 *
 * VitePress reads a folder of its own, dist/site-source, in which every page lies at its address; reference pages come from
 * the declarations.
 */
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { parseArgs } from 'node:util'
import { Glob } from 'bun'
import { build } from 'vitepress'
import { made } from '../generate.ts'
import { addressOf, pages, repository } from './pages.ts'

/** Where the site is. */
export const output: string = join(repository, 'dist/site')

const source = join(repository, 'dist/site-source')

/** Builds the site; `base` is the path it will be served at. */
export async function buildSite(base = '/'): Promise<void> {
  rmSync(source, { recursive: true, force: true })
  const write = (path: string, content: string) => {
    mkdirSync(dirname(join(source, path)), { recursive: true })
    writeFileSync(join(source, path), content)
  }
  const configured = import.meta.dir
  write('.vitepress/config.ts', `export { default } from '${join(configured, 'config.ts')}'\n`)
  write('.vitepress/theme/index.ts', `export { default } from '${join(configured, 'theme.ts')}'\n`)
  cpSync(join(configured, 'index.md'), join(source, 'index.md'))
  cpSync(join(configured, 'public'), join(source, 'public'), { recursive: true })
  for (const file of pages) write(`${addressOf(file)}.md`, readFileSync(join(repository, file), 'utf8'))
  // Files that pages link to: manifests, rules, dashboards.
  for (const file of new Glob('*/*.{json,yaml,png}').scanSync(join(repository, 'docs')))
    cpSync(join(repository, 'docs', file), join(source, 'public', file), { recursive: true })
  // The reference is as the declarations are now, whatever was checked in; its schema is a file for editors.
  for (const [name, content] of Object.entries(await made())) write(join(name.endsWith('.md') ? '' : 'public', 'reference', name), content)
  await build(source, { base, outDir: output })
}

if (import.meta.main) {
  const { values } = parseArgs({ options: { base: { type: 'string' } } })
  await buildSite(values.base)
}
