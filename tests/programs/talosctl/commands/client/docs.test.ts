import { describe, expect, test } from 'bun:test'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { allPages } from '../../../../../src/programs/talosctl/commands/client/docs.ts'
import { examples, manPage, markdown, synopsis } from '../../../../../src/programs/talosctl/reference.ts'
import { find, hoist, run } from '../../../../../src/programs/talosctl/talosctl.ts'
import { textIo } from '../../peer.ts'

const pages = await allPages(textIo())

test('every command that is not hidden has a page with a description, and every flag is described', () => {
  expect(pages.length).toBeGreaterThan(80)
  for (const { path, command, options } of pages) {
    expect([path, command.description() || command.summary()]).not.toEqual([path, ''])
    expect([path, options.filter(({ description }) => !description).map(({ flags }) => flags)]).toEqual([path, []])
  }
})

test('a page has usage, aliases, flags, examples and what lies below', () => {
  const pcap = pages.find(({ path }) => path === 'talosctl pcap')!
  expect(synopsis(pcap)).toBe('talosctl pcap [flags]')
  const text = markdown([pcap, pages.find(({ path }) => path === 'talosctl image')!], 'About.')
  expect(text).toStartWith('# talosctl\n\nAbout.\n\n## talosctl pcap\n')
  expect(text).toContain('Also: `tcpdump`\n')
  expect(text).toContain('| `--duration <duration>` | end after this time; 0 is never (default: 0) |\n')
  expect(text).toContain('- [talosctl image list](#talosctl-image-list): List the images of each node.\n')
  expect(text).not.toContain('snaplen')
})

test('a page for man has what man needs, and no line that roff would take for a request', () => {
  for (const page of pages) {
    const { name, text } = manPage(page, pages, 'Ichor')
    expect(name).toBe(`${page.path.replaceAll(' ', '-')}.1`)
    expect(text).toStartWith('.TH "')
    for (const line of text.split('\n')) expect(line).toMatch(/^(\.(TH|SH|TP|B|I|BR|nf|fi)\b.*|[^.'].*|)$/)
  }
})

describe('examples in help are command lines that exist', () => {
  const lines = pages.flatMap(({ command }) =>
    examples(command)
      .split('\n')
      .map((line) => /^\s*(talosctl [^|>]*?)(?:\s{3,}.*|\s*[|>].*)?$/.exec(line)?.[1])
      .filter((line) => line !== undefined),
  )
  test.each([...new Set(lines)])('%s', async (line) => {
    const [, ...words] = line.match(/'[^']*'|"[^"]*"|\S+/g) ?? []
    const { name, args } = hoist(words.map((word) => word.replace(/^(['"])(.*)\1$/, '$2')))
    const found = find(name)
    expect(found).toBeDefined()
    // With --help at the end of its flags the line is parsed, its flags known or refused, and nothing is done.
    const io = textIo()
    const flagsEnd = args.includes('--') ? args.indexOf('--') : args.length
    const code = await run([name, ...args.toSpliced(flagsEnd, 0, '--help')], io)
    expect([code, io.written.err]).toEqual([0, ''])
    const known = new Set([...io.written.out.matchAll(/(?<![\w-])--?[a-zA-Z][\w-]*/g)].map(([flag]) => flag))
    const used = args.filter((word) => /^--?[a-zA-Z]/.test(word)).map((word) => word.split('=')[0]!)
    expect(used.filter((flag) => !known.has(flag))).toEqual([])
  })
})

test('talosctl docs writes them', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'ichor-docs-'))
  const io = textIo()
  expect(await run(['docs', folder], io)).toBe(0)
  expect(readdirSync(folder).sort()).toEqual(['cli.md', 'config.schema.json', 'configuration.md', 'man'])
  expect(readdirSync(join(folder, 'man'))).toHaveLength(pages.length)
  expect(readFileSync(join(folder, 'configuration.md'), 'utf8')).toContain('machine')
  const bad = textIo()
  expect(await run(['docs', '/proc/nothing', '--cli'], bad)).toBe(1)
  expect(bad.written.err).toMatch(/^write "\/proc\/nothing.*": E[A-Z]+\n$/)
  rmSync(folder, { recursive: true })
})
