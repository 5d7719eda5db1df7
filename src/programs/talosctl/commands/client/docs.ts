import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Command } from 'commander'
import { release } from '../../../../release.ts'
import { codeOf } from '../../../../wire/errno.ts'
import { Cluster } from '../../cluster.ts'
import { UsageError } from '../../failure.ts'
import { type Io, remark } from '../../io.ts'
import { manPage, markdown, type Page, pagesOf } from '../../reference.ts'

interface DocsOptions {
  cli?: boolean
  config?: boolean
}

const about =
  'Every command with its flags, from the declarations that parse them. Nodes are named with `--nodes`; results go to standard output, everything else to standard error.'

const examples = `
Examples:
  talosctl docs ./reference              everything: cli.md, man/*.1, configuration.md
  talosctl docs ./reference --cli        the commands alone
  man ./reference/man/talosctl-health.1
`

/** talosctl docs */
export const docs = (io: Io, _: Cluster) =>
  new Command()
    .description('Write reference pages: the commands as Markdown and for man, and the machine configuration.')
    .argument('<output>', 'folder to write to')
    .option('--cli', 'only the commands')
    .option('--config', 'only the machine configuration')
    .addHelpText('after', examples)
    .action((output: string, options: DocsOptions) => runDocs(io, output, options))

/** Writes the pages; without flags all of them. */
export async function runDocs(io: Io, output: string, { cli, config }: DocsOptions): Promise<void> {
  const files: [string, string][] = []
  if (cli || !config) {
    const pages = await allPages(io)
    files.push(['cli.md', markdown(pages, about)])
    for (const page of pages) {
      const { name, text } = manPage(page, pages, `${release.name} ${release.tag}`)
      files.push([join('man', name), text])
    }
  }
  if (config || !cli) {
    const { configSchema, referencePage } = await import('../../../../os/config/reference.ts')
    files.push(['configuration.md', referencePage()], ['config.schema.json', `${JSON.stringify(configSchema(), null, 2)}\n`])
  }
  try {
    await mkdir(cli || !config ? join(output, 'man') : output, { recursive: true })
    for (const [name, text] of files) await writeFile(join(output, name), text)
  } catch (error) {
    const path = error instanceof Error && 'path' in error ? error.path : output
    throw new UsageError(`write "${path}": ${codeOf(error)}`)
  }
  remark(io, `wrote ${files.length} files into "${output}"\n`)
}

/** The pages of all commands that are not hidden. */
export async function allPages(io: Io): Promise<Page[]> {
  const { build } = await import('../../talosctl.ts')
  const { commands } = await import('../../command-table.ts')
  const pages: Page[] = []
  for (const [name, entry] of Object.entries(commands)) {
    if (entry.hidden) continue
    pages.push(...pagesOf(await build(name, entry, io, new Cluster(io))))
  }
  return pages
}
