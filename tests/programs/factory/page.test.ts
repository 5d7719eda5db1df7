/** The page of the factory as a browser without scripts sees it. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { rmSync } from 'node:fs'
import { html } from '../../../src/programs/factory/page/html.ts'
import { line, version, writeProducts } from './built.ts'
import { newFolder, served } from './served.ts'

const folder = newFolder()
beforeAll(() => writeProducts(folder))
afterAll(() => rmSync(folder, { recursive: true }))

/** Sends the form, without following where it leads. */
const send = (factory: ReturnType<typeof served>, fields: Record<string, string>, headers: Record<string, string> = {}) =>
  factory.ask('/page/schematic', { method: 'POST', body: new URLSearchParams(fields), headers, redirect: 'manual' })

test('a form leads to images of its schematic, whose links are answered', async () => {
  await using factory = served(folder, { externalUrl: 'https://factory.example.org' })
  const sent = await send(factory, { version, arguments: ' ip=dhcp \r\n\r\n-panic\r\n' })
  expect(sent.status).toBe(303)
  const page = await factory.ask(sent.headers.get('location') ?? '')
  const text = await page.text()
  expect([page.status, page.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8'])
  const [, id = ''] = /href="\/schematics\/([0-9a-f]{64})"/.exec(text) ?? []
  expect(text).toContain(`<pre id="upgrade">talosctl upgrade --nodes NODE --image factory.example.org/installer/${id}:${version}</pre>`)
  expect(text).toContain(`chain --autofree https://factory.example.org/pxe/${id}/${version}/metal-amd64</pre>`)
  expect(text).toContain('>\nip=dhcp\n-panic</textarea>')
  const links = [...text.matchAll(/href="(\/[^"]*)"/g)].map(([, link = '']) => link)
  expect(links.filter((link) => !link.startsWith('/page/')).length).toBeGreaterThan(4)
  for (const link of links) expect([link, (await factory.ask(link)).status]).toEqual([link, 200])
  expect(await (await factory.ask(`/image/${id}/${version}/cmdline-metal-amd64`)).text()).toBe(`${line.replace(' panic=10', '')} ip=dhcp\n`)
}, 30_000)

test('what cannot be done is shown in the page, with what was typed', async () => {
  await using factory = served(folder)
  const wrong = await send(factory, { version: 'v9.9.9', arguments: '<script>alert(1)</script>' })
  const text = await wrong.text()
  expect(wrong.status).toBe(404)
  expect(text).toContain(`role="alert">version &quot;v9.9.9&quot; is not held here, but ${version}</p>`)
  expect(text).toContain('&lt;script&gt;alert(1)&lt;/script&gt;</textarea>')
  const long = await send(factory, { version, arguments: 'x'.repeat(3000) })
  expect([long.status, (await long.text()).includes('role="alert"')]).toEqual([400, true])
  expect((await factory.ask('/?schematic=nothing&version=v1.0.0')).status).toBe(404)
  expect((await send(factory, { version, arguments: '' }, { 'sec-fetch-site': 'cross-site' })).status).toBe(403)
  expect((await send(factory, { version, arguments: 'x'.repeat(20_000) })).status).toBe(413)
})

test('a factory without a release states so', async () => {
  const empty = newFolder()
  await using factory = served(empty)
  expect(await (await factory.ask('/')).text()).toContain('No release is held here yet.')
  rmSync(empty, { recursive: true })
})

test('values in HTML are text', () => {
  expect(html`<a href="${`"><'&`}">${[html`<b>${1}</b>`]}${undefined}</a>`.text).toBe('<a href="&quot;&gt;&lt;&#39;&amp;"><b>1</b></a>')
})
