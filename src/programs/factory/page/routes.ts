/** The requests of the page, which is for people with a browser; programs use the API. */
import { offersOf, platformArchitecture } from '../assets.ts'
import { FactoryError } from '../factory-error.ts'
import { type Architecture, architectures, findReleases, releaseOf, versionsOf } from '../releases.ts'
import { parseSchematic } from '../schematic.ts'
import type { Schematics } from '../schematics.ts'
import { pageOf, type Result } from './page.ts'
import script from './script.js' with { type: 'text' }
import style from './style.css' with { type: 'text' }

/** Bytes of a form. */
export const longestForm = 16 << 10

/** What the page is made of. */
export interface PageSource {
  readonly images: string
  readonly schematics: Schematics
}

/** Nothing of another site runs in the page, and no other site shows it in a frame. */
const headers = {
  'content-security-policy':
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cache-control': 'no-store',
}

/** The answer to a request of the page, and undefined for what the API answers. `origin` is where clients reach the factory. */
export function pageAnswer({ images, schematics }: PageSource, { pathname, searchParams }: URL, origin: string): Response | undefined {
  if (pathname === '/page/style.css') return file(style, 'text/css')
  if (pathname === '/page/script.js') return file(script, 'text/javascript')
  if (pathname !== '/') return undefined
  const [id, version] = [searchParams.get('schematic') ?? undefined, searchParams.get('version') ?? undefined]
  const arch = architectureIn(searchParams)
  const argumentsText = searchParams.get('arguments') ?? ''
  try {
    const result = id === undefined ? undefined : resultOf({ images, schematics }, { id, version: version ?? '', arch }, origin)
    const typed = result ? (result.schematic.customization.extraKernelArgs ?? []).join('\n') : argumentsText
    return page(images, { version, arch, argumentsText: typed, result })
  } catch (error) {
    if (!(error instanceof FactoryError)) throw error
    return page(images, { version, arch, argumentsText, error: error.message }, error.status)
  }
}

/** Makes the schematic of a form, and leads to its images; an error leads back to what was typed. */
export function postForm({ images, schematics }: PageSource, body: Uint8Array): Response {
  const form = new URLSearchParams(new TextDecoder().decode(body))
  const version = form.get('version') ?? ''
  const arch = architectureIn(form)
  const typed = form.get('arguments') ?? ''
  const extraKernelArgs = typed.split('\n').flatMap((line) => line.trim() || [])
  try {
    const schematic = parseSchematic(Buffer.from(JSON.stringify({ customization: { extraKernelArgs } })))
    resultOf({ images, schematics: { get: () => schematic } }, { id: schematic.id, version, arch }, 'http://localhost')
    schematics.add(schematic)
    const query = new URLSearchParams({ version, arch, schematic: schematic.id })
    return new Response(null, { status: 303, headers: { location: `/?${query}` } })
  } catch (error) {
    if (!(error instanceof FactoryError)) throw error
    return page(images, { version, arch, argumentsText: typed, error: error.message }, error.status)
  }
}

/** The architecture of a form or an address; that of most machines without one. */
const architectureIn = (fields: URLSearchParams): Architecture => architectures.find((each) => each === fields.get('arch')) ?? 'amd64'

function resultOf(
  { images, schematics }: { images: string; schematics: Pick<Schematics, 'get'> },
  { id, version, arch }: { id: string; version: string; arch: Architecture },
  origin: string,
): Result {
  const schematic = schematics.get(id)
  const release = releaseOf(images, version, arch)
  const platform = platformArchitecture(release, schematic)
  return { schematic, version: release.version, platform, offers: offersOf(release), origin }
}

function page(images: string, content: Omit<Parameters<typeof pageOf>[0], 'versions' | 'architectures'>, status = 200): Response {
  const releases = findReleases(images)
  const held = architectures.filter((arch) => releases.some((each) => each.arch === arch))
  const shown = pageOf({ versions: versionsOf(releases).reverse(), architectures: held, ...content })
  return new Response(shown, { status, headers: { ...headers, 'content-type': 'text/html; charset=utf-8' } })
}

const file = (text: string, type: string) => new Response(text, { headers: { ...headers, 'content-type': `${type}; charset=utf-8` } })
