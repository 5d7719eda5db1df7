/** The site's configuration for VitePress. */
import { defineConfig } from 'vitepress'
import { anchorOf } from './links.ts'
import { prepareMarkdown } from './markdown.ts'
import { addressOf, groups, titleOf } from './pages.ts'

const item = (file: string) => ({ text: titleOf(file), link: `/${addressOf(file)}` })
const reference = groups.find(({ title }) => title === 'Reference')?.files ?? []

export default defineConfig({
  title: 'Ichor',
  description: 'A Kubernetes operating system managed through an API',
  lang: 'en',
  transformHead: ({ siteData }) => [['link', { rel: 'icon', type: 'image/svg+xml', href: `${siteData.base}icon.svg` }]],
  // Nothing of a page is HTML or a component: what looks like a tag is a placeholder.
  markdown: {
    html: false,
    linkify: false,
    attrs: { disable: true },
    anchor: { slugify: anchorOf },
    config: prepareMarkdown,
  },
  themeConfig: {
    logo: '/icon.svg',
    nav: [
      { text: 'Guide', link: '/overview', activeMatch: '^/(?!reference/)' },
      { text: 'Reference', activeMatch: '^/reference/', items: reference.map(item) },
    ],
    sidebar: groups.map(({ title, files }) => ({ text: title, items: files.map(item) })),
    search: { provider: 'local' },
    outline: { level: [2, 3] },
    externalLinkIcon: true,
  },
})
