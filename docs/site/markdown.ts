/** How the site renders Markdown: as any other view of the repository does, with links turned into addresses of the site. */
import type { MarkdownRenderer } from 'vitepress'
import { hrefOf, targetOf } from './links.ts'
import { addressOf, pages } from './pages.ts'

type Tokens = NonNullable<Parameters<MarkdownRenderer['renderer']['render']>[0]>

/** Prepares VitePress' renderer. */
export function prepareMarkdown(md: MarkdownRenderer): void {
  md.core.ruler.before('normalize', 'comments', (state) => {
    state.src = state.src.replaceAll(/^<!--.*-->$/gm, '')
  })
  md.core.ruler.push('repository-links', (state) => {
    const address = String(state.env.relativePath).replace(/\.md$/, '')
    const from = pages.find((file) => addressOf(file) === address)
    if (from) for (const { children } of state.tokens) if (children) turnLinks(from, children)
  })
  // Pages become Vue templates, in which braces are expressions.
  const { text } = md.renderer.rules
  if (!text) throw new Error('the renderer has no rule for text')
  md.renderer.rules.text = (...args) => text(...args).replaceAll('{{', '&#123;&#123;')
}

/**
 * Links to source are shown as text: the site does not know where the repository can be browsed. Links within the page stay as
 * they are; the index of the search knows headings by them.
 */
function turnLinks(from: string, tokens: Tokens): void {
  let source = false
  for (const token of tokens) {
    const written = token.type === 'link_open' ? String(token.attrGet('href')) : '#'
    if (!written.startsWith('#')) {
      const target = targetOf(from, written)
      const href = hrefOf(target)
      if (href) token.attrSet('href', href)
      source = target.kind === 'source'
      if (target.kind === 'source') token.attrs = [['title', `${target.file} in the repository`]]
    }
    if (source && (token.type === 'link_open' || token.type === 'link_close')) token.tag = 'span'
    if (token.type === 'link_close') source = false
  }
}
