/** The page of the image factory in a real browser: with a keyboard, on a narrow screen, and without scripts. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { version, writeProducts } from '../programs/factory/built.ts'
import { newFolder, served } from '../programs/factory/served.ts'
import { Browser, type Page } from './browser.ts'

const folder = newFolder()
const shots = join(import.meta.dir, '../../dist/factory-page')
let factory: ReturnType<typeof served>
let browser: Browser
let page: Page

beforeAll(async () => {
  await writeProducts(folder)
  factory = served(folder)
  browser = await Browser.start()
  page = await browser.page(factory.url)
  mkdirSync(shots, { recursive: true })
}, 60_000)
afterAll(async () => {
  await browser?.close()
  await factory?.[Symbol.asyncDispose]()
  rmSync(folder, { recursive: true })
})

const loaded = `document.readyState === 'complete'`
const shoot = async (name: string) => writeFileSync(join(shots, `${name}.png`), await page.screenshot())
const wider = `document.documentElement.scrollWidth > document.documentElement.clientWidth`

/** Goes to the next field by the keyboard until one matches. */
async function tabTo(selector: string): Promise<void> {
  for (let step = 0; step < 30; step++) {
    if (await page.run<boolean>(`document.activeElement.matches('${selector}')`)) return
    await page.press('Tab')
  }
  throw new Error(`the keyboard does not reach ${selector}`)
}

test('an image is ordered with the keyboard alone, and its build is shown', async () => {
  page.problems.length = 0
  await page.open('/', loaded)
  await shoot('start')
  await tabTo('#arguments')
  await page.type('ip=dhcp')
  await tabTo('button.main')
  await page.press('Enter')
  await page.until(`document.querySelector('#images') && ${loaded}`)
  expect(await page.run<string>(`document.querySelector('#images').textContent`)).toBe(`${version} for metal-amd64`)
  await tabTo('button[data-url$=".iso"]')
  await page.press('Enter')
  const output = `document.querySelector('button[data-url$=".iso"]').parentElement.querySelector('output').textContent`
  await page.until(`${output}.startsWith('Built, ')`)
  expect(await page.run<string>(output)).toMatch(/^Built, \d+\.\d MiB\. SHA-256 [0-9a-f]{64}$/)
  await shoot('images')
  expect(page.problems).toEqual([])
})

test('it fits a narrow screen, and every field has a name', async () => {
  await page.resize(390, 844)
  await shoot('narrow')
  expect(await page.run<boolean>(wider)).toBe(false)
  const unnamed = `[...document.querySelectorAll('button:not([hidden]), select, textarea, a')].filter((each) => !(each.textContent.trim() || each.ariaLabel || each.labels?.length)).length`
  expect(await page.run<number>(unnamed)).toBe(0)
  await page.resize(1440, 900)
})

test('without scripts there are links in the place of buttons', async () => {
  await page.call('Network.setBlockedURLs', { urls: ['*/page/script.js'] })
  try {
    await page.open('/', loaded)
    await tabTo('button.main')
    await page.press('Enter')
    await page.until(`document.querySelector('#images') && ${loaded}`)
    expect(await page.run<number>(`document.querySelectorAll('td button:not([hidden])').length`)).toBe(0)
    expect(await page.run<number>(`document.querySelectorAll('td a[href^="/image/"]').length`)).toBeGreaterThan(2)
  } finally {
    await page.call('Network.setBlockedURLs', { urls: [] })
  }
})
