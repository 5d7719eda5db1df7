/** Links of the pages: written as paths in the repository, so that they work in any view of it, and turned into addresses of the site. */
import { posix } from 'node:path'
import { addressOf, pages } from './pages.ts'

/** Where a link leads. */
export type Target =
  /** Another site. */
  | { readonly kind: 'external' }
  /** A page of the site; an empty anchor is its top. */
  | { readonly kind: 'page'; readonly file: string; readonly anchor: string }
  /** A file of docs/ that is no page: it is part of the site as it is. */
  | { readonly kind: 'asset'; readonly file: string }
  /** Source that the site does not have. */
  | { readonly kind: 'source'; readonly file: string }

/** Where a link in a page leads; `from` is the path of the page in the repository. */
export function targetOf(from: string, href: string): Target {
  if (/^[a-z][a-z\d+.-]*:/i.test(href)) return { kind: 'external' }
  const [path = '', anchor = ''] = href.split('#')
  const file = path === '' ? from : posix.join(posix.dirname(from), path)
  const page = [file, posix.join(file, 'README.md')].find((one) => pages.includes(one))
  if (page) return { kind: 'page', file: page, anchor }
  return file.startsWith('docs/') && !file.endsWith('/') ? { kind: 'asset', file } : { kind: 'source', file }
}

/** The address of a link within the site; undefined when it leads out of it. */
export function hrefOf(target: Target): string | undefined {
  if (target.kind === 'page') return `/${addressOf(target.file)}${target.anchor ? `#${target.anchor}` : ''}`
  if (target.kind === 'asset') return `/${target.file.replace(/^docs\//, '')}`
  return undefined
}

/** The anchor of a heading without its markup, as forges make it too. */
export const anchorOf = (heading: string): string =>
  heading
    .trim()
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\p{M}\p{Pc} -]/gu, '')
    .replaceAll(' ', '-')
