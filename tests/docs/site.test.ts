/** What the documentation site is made of: every page has its place, and every link leads somewhere. */
import { describe, expect, test } from 'bun:test'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Glob } from 'bun'
import { parse } from 'yaml'
import { anchorOf, hrefOf, targetOf } from '../../docs/site/links.ts'
import { addressOf, pages, repository, titleOf } from '../../docs/site/pages.ts'

/** The text of a page without its code blocks. */
const proseOf = (file: string) => readFileSync(join(repository, file), 'utf8').replaceAll(/^```.*?^```$/gms, '')

const anchors = new Map(
  pages.map((file) => {
    const headings = [...proseOf(file).matchAll(/^#{1,6} (.+)$/gm)].map(([, heading = '']) => anchorOf(heading))
    return [file, new Set(['', ...headings.map((anchor, index) => numbered(anchor, headings.slice(0, index)))])]
  }),
)

/** A heading that was there before gets a number. */
function numbered(anchor: string, before: readonly string[]): string {
  const times = before.filter((each) => each === anchor).length
  return times === 0 ? anchor : `${anchor}-${times}`
}

/** Links of a page that lead nowhere. */
function broken(file: string): string[] {
  const links = [
    ...proseOf(file)
      .replaceAll(/`[^`\n]*`/g, '')
      .matchAll(/\]\(([^)\s]+)\)/g),
  ].map(([, href = '']) => href)
  return links.filter((href) => {
    const target = targetOf(file, href)
    if (target.kind === 'external') return !/^(https|mailto):/.test(href)
    if (target.kind === 'page') return !anchors.get(target.file)?.has(target.anchor)
    return !existsSync(join(repository, target.file))
  })
}

describe('the sidebar', () => {
  test('has every page of docs/ once', () => {
    const there = [...new Glob('docs/**/*.md').scanSync(repository)].filter((file) => file !== 'docs/site/index.md').sort()
    expect(pages.filter((file) => file.startsWith('docs/')).toSorted()).toEqual(there)
  })

  test('gives each page an address and a title of its own', () => {
    expect(new Set(pages.map(addressOf)).size).toBe(pages.length)
    expect(new Set(pages.map(titleOf)).size).toBe(pages.length)
  })
})

describe('links lead somewhere', () => {
  test.each([...pages])('in %s', (file) => expect(broken(file)).toEqual([]))

  test('on the home page', () => {
    const [, front = ''] = readFileSync(join(repository, 'docs/site/index.md'), 'utf8').split('---\n')
    const { hero, features } = parse(front) as { hero: { actions: { link: string }[] }; features: { link: string }[] }
    const links = [...hero.actions, ...features].map(({ link }) => link)
    expect(links.length).toBeGreaterThan(5)
    expect(links.filter((link) => !pages.some((file) => `/${addressOf(file)}` === link))).toEqual([])
  })
})

describe('a link', () => {
  const links: [from: string, href: string, to: string | undefined][] = [
    ['README.md', 'docs/upgrades.md#numbers-of-releases', '/upgrades#numbers-of-releases'],
    ['README.md', 'rootfs/', '/rootfs'],
    ['docs/architecture.md', 'reference/configuration.md', '/reference/configuration'],
    ['docs/architecture.md', 'reference/config.schema.json', '/reference/config.schema.json'],
    ['docs/architecture.md', '../README.md', '/overview'],
    ['docs/boot.md', '#slots', '/boot#slots'],
    ['docs/boot.md', '../src/main.ts', undefined],
    ['docs/disks.md', 'https://cel.dev', undefined],
  ]
  test.each(links)('in %s to %s', (from, href, to) => expect(hrefOf(targetOf(from, href))).toBe(to))
})

test('an anchor is that of a forge', () => {
  expect(anchorOf('Packages, and what is written here instead')).toBe('packages-and-what-is-written-here-instead')
  expect(anchorOf('machine.MachineService')).toBe('machinemachineservice')
  expect(anchorOf('`talosctl get` — “quoted” a_b')).toBe('talosctl-get--quoted-a_b')
})
