/** The built documentation site in a real browser: every page, every link, the search and the dark mode. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { addressOf, pages, repository } from '../../docs/site/pages.ts'
import { Browser, type Page } from './browser.ts'

const site = join(repository, 'dist/site')
const addresses = ['/', ...pages.map((file) => `/${addressOf(file)}.html`)]

const server = Bun.serve({
  hostname: '127.0.0.1',
  port: 0,
  fetch(request) {
    const { pathname } = new URL(request.url)
    const path = join(site, pathname.endsWith('/') ? `${pathname}index.html` : pathname)
    if (existsSync(path)) return new Response(Bun.file(path))
    return new Response(Bun.file(join(site, '404.html')), { status: 404 })
  },
})
const origin = `http://127.0.0.1:${server.port}`

let browser: Browser
let page: Page

beforeAll(async () => {
  browser = await Browser.start()
  page = await browser.page(origin)
})

afterAll(async () => {
  await browser?.close()
  await server.stop(true)
})

/** What each page was found to have. */
const links = new Map<string, string[]>()
const anchors = new Map<string, Set<string>>()

describe('every page loads without an error, contacts no other host, and fits a telephone', () => {
  test.each(addresses)('%s', async (address) => {
    page.problems.length = 0
    await page.open(address)
    expect(await page.run<string>(`document.querySelector('h1')?.textContent ?? ''`)).not.toBe('')
    links.set(address, await page.run(`[...document.querySelectorAll('a[href]')].map((link) => link.href)`))
    anchors.set(address, new Set(await page.run<string[]>(`[...document.querySelectorAll('[id]')].map(({ id }) => id)`)))
    await page.resize(390, 844)
    const wider = `document.documentElement.scrollWidth > document.documentElement.clientWidth`
    expect(await page.run<boolean>(wider)).toBe(false)
    await page.resize(1440, 900)
    expect(page.problems).toEqual([])
  })
})

test('every link leads to a page and a heading that are there', async () => {
  const broken: string[] = []
  const inside = new Set<string>()
  for (const [address, hrefs] of links)
    for (const href of hrefs) {
      const url = new URL(href)
      if (url.origin !== origin) continue
      inside.add(url.pathname)
      const there = anchors.get(url.pathname)
      const anchor = decodeURIComponent(url.hash.slice(1))
      if (there ? anchor && !there.has(anchor) : !existsSync(join(site, url.pathname))) broken.push(`${address}: ${href}`)
    }
  expect(broken).toEqual([])
  expect([...addresses].filter((address) => !inside.has(address))).toEqual([])
})

test('a missing page is reported', async () => {
  await page.open('/nothing')
  expect(await page.run<string>(`document.body.textContent`)).toContain('404')
})

test('the search finds a command', async () => {
  page.problems.length = 0
  await page.open('/')
  await page.press('k', 2)
  await page.until(`document.activeElement?.matches('.VPLocalSearchBox input')`)
  await page.type('talosctl upgrade')
  await page.until(`document.querySelector('.VPLocalSearchBox .result')`)
  const found = await page.run<string[]>(
    `[...document.querySelectorAll('.VPLocalSearchBox .result')].map((one) => one.getAttribute('href'))`,
  )
  expect(found[0]).toBe('/reference/commands.html#talosctl-upgrade')
  await page.press('Enter')
  await page.until(`location.pathname + location.hash === '/reference/commands.html#talosctl-upgrade'`)
  await page.until(`document.getElementById('talosctl-upgrade')?.getBoundingClientRect().top < innerHeight`)
  expect(page.problems).toEqual([])
})

test('the dark mode is switched on, stays on, and is switched off', async () => {
  const dark = () => page.run<boolean>(`document.documentElement.classList.contains('dark')`)
  const brightness = () =>
    page.run<number>(`Math.max(...getComputedStyle(document.body).backgroundColor.match(/\\d+/g).slice(0, 3).map(Number))`)
  const toggle = async () => {
    const before = await dark()
    await page.run(`document.querySelector('.VPNavBarAppearance button, .VPSwitchAppearance').click()`)
    await page.until(`document.documentElement.classList.contains('dark') !== ${before}`)
  }
  await page.open('/overview.html')
  expect([await dark(), await brightness()]).toEqual([false, 255])
  await toggle()
  expect(await brightness()).toBeLessThan(64)
  await page.open('/reference/api.html')
  expect(await dark()).toBe(true)
  await toggle()
  expect(await brightness()).toBe(255)
})
