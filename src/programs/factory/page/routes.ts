/** The requests of the page, which is for people with a browser; programs use the API. */
import { existsSync } from 'node:fs'
import type { VexDocument } from '../../../oci/openvex.ts'
import { offersOf, platformArchitecture } from '../assets.ts'
import { sbomFile } from '../attest.ts'
import { chosenExtensions, offeredFor } from '../extensions.ts'
import { FactoryError } from '../factory-error.ts'
import { type Architecture, architectures, findReleases, pathOf, type Release, releaseOf, versionsOf } from '../releases.ts'
import { parseSchematic } from '../schematic.ts'
import type { Schematics } from '../schematics.ts'
import { hasVex } from '../vex.ts'
import type { Workshop } from '../workshop.ts'
import { pageOf, type Result } from './page.ts'
import script from './script.js' with { type: 'text' }
import style from './style.css' with { type: 'text' }

/** Bytes of a form. */
export const longestForm = 16 << 10

/** What the page is made of. */
export interface PageSource {
  readonly images: string
  readonly schematics: Schematics
  readonly workshop: Pick<Workshop, 'extensions' | 'signers'>
  readonly vex?: readonly VexDocument[] | undefined
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
export function pageAnswer(source: PageSource, { pathname, searchParams }: URL, origin: string): Response | undefined {
  if (pathname === '/page/style.css') return file(style, 'text/css')
  if (pathname === '/page/script.js') return file(script, 'text/javascript')
  if (pathname !== '/') return undefined
  const [id, version] = [searchParams.get('schematic') ?? undefined, searchParams.get('version') ?? undefined]
  const arch = architectureIn(searchParams)
  const argumentsText = searchParams.get('arguments') ?? ''
  const chosen = searchParams.getAll('extension')
  try {
    const result = id === undefined ? undefined : resultOf(source, { id, version: version ?? '', arch }, origin)
    if (!result) return page(source, { version, arch, argumentsText, chosen })
    const { extraKernelArgs = [], systemExtensions } = result.schematic.customization
    const named = systemExtensions?.officialExtensions ?? []
    return page(source, { version, arch, argumentsText: extraKernelArgs.join('\n'), chosen: named, result })
  } catch (error) {
    if (!(error instanceof FactoryError)) throw error
    return page(source, { version, arch, argumentsText, chosen, error: error.message }, error.status)
  }
}

/** Makes the schematic of a form, and leads to its images; an error leads back to what was typed. */
export function postForm(source: PageSource, body: Uint8Array): Response {
  const form = new URLSearchParams(new TextDecoder().decode(body))
  const version = form.get('version') ?? ''
  const arch = architectureIn(form)
  const typed = form.get('arguments') ?? ''
  const chosen = form.getAll('extension')
  const extraKernelArgs = typed.split('\n').flatMap((line) => line.trim() || [])
  try {
    const schematic = parseSchematic(
      Buffer.from(JSON.stringify({ customization: { extraKernelArgs, systemExtensions: { officialExtensions: chosen } } })),
    )
    resultOf({ ...source, schematics: { get: () => schematic } }, { id: schematic.id, version, arch }, 'http://localhost')
    source.schematics.add(schematic)
    const query = new URLSearchParams({ version, arch, schematic: schematic.id })
    return new Response(null, { status: 303, headers: { location: `/?${query}` } })
  } catch (error) {
    if (!(error instanceof FactoryError)) throw error
    return page(source, { version, arch, argumentsText: typed, chosen, error: error.message }, error.status)
  }
}

/** The architecture of a form or an address; that of most machines without one. */
const architectureIn = (fields: URLSearchParams): Architecture => architectures.find((each) => each === fields.get('arch')) ?? 'amd64'

function resultOf(
  { images, schematics, workshop, vex = [] }: Omit<PageSource, 'schematics'> & { schematics: Pick<Schematics, 'get'> },
  { id, version, arch }: { id: string; version: string; arch: Architecture },
  origin: string,
): Result {
  const schematic = schematics.get(id)
  const release = releaseOf(images, version, arch)
  const platform = platformArchitecture(release, schematic)
  chosenExtensions(workshop.extensions ?? [], release, schematic)
  const statements = statementsOf(release, { vex, key: workshop.signers.key !== undefined })
  return { schematic, version: release.version, platform, offers: offersOf(release), statements, origin }
}

/** What can be stated about the images of a release. */
function statementsOf(release: Release, { vex, key }: { vex: readonly VexDocument[]; key: boolean }): Result['statements'] {
  const sbom = existsSync(pathOf(release, sbomFile))
  const flaws = sbom && hasVex(release, vex)
  return [
    ...(sbom ? [['spdx.json', 'SBOM'] as const] : []),
    ...(flaws ? [['vex.json', 'VEX'] as const] : []),
    ...(flaws && key ? [['vex-attestation.json', 'signed VEX'] as const] : []),
    ...(key ? [['provenance.json', 'provenance'] as const] : []),
  ]
}

function page(
  { images, workshop }: PageSource,
  content: Omit<Parameters<typeof pageOf>[0], 'versions' | 'architectures' | 'extensions'>,
  status = 200,
): Response {
  const releases = findReleases(images)
  const held = architectures.filter((arch) => releases.some((each) => each.arch === arch))
  const versions = versionsOf(releases).reverse()
  const extensions = offeredFor(workshop.extensions ?? [], content.version ?? versions[0] ?? '')
  const shown = pageOf({ versions, architectures: held, extensions, ...content })
  return new Response(shown, { status, headers: { ...headers, 'content-type': 'text/html; charset=utf-8' } })
}

const file = (text: string, type: string) => new Response(text, { headers: { ...headers, 'content-type': `${type}; charset=utf-8` } })
