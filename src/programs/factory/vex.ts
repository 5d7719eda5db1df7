/** Which known flaws concern an image (OpenVEX): what its release states, and what the operator of the factory does. */
import { createHash, type KeyObject } from 'node:crypto'
import { existsSync } from 'node:fs'
import { packagesOf, parseVex, timeOf, type VexDocument, VexError, type VexStatement, vexContext } from '../../oci/openvex.ts'
import { namesPackage, type PackageUrl, parsePackageUrl } from '../../oci/package-url.ts'
import { attested, parsedSbom, type Subject, sbomOf } from './attest.ts'
import { readDocument } from './build/read-file.ts'
import { FactoryError } from './factory-error.ts'
import { fileNameOf, pathOf, type Release } from './releases.ts'

const vexFile = 'ichor-amd64.vex.json'
const documentLimit = 16 << 20

/** What statements are made about, beside its packages. */
interface Product {
  readonly '@id': string
  readonly hashes?: Readonly<Record<string, string>>
}

/** Whether anything may be stated about the images of a release. */
export const hasVex = (release: Release, given: readonly VexDocument[]): boolean => given.length > 0 || existsSync(pathOf(release, vexFile))

/** The statements about an image, whose packages are those of `extended`: its release with the extensions of the schematic. Throws FactoryError. */
export async function imageVex(
  { name, sha256, release }: Subject,
  { extended, given, address }: { extended: Release; given: readonly VexDocument[]; address: string },
): Promise<VexDocument> {
  const version = encodeURIComponent(release.version.slice(1))
  const product = {
    '@id': `pkg:generic/${encodeURIComponent(name)}@${version}?arch=${release.arch}&checksum=sha256:${sha256}`,
    hashes: { 'sha-256': sha256 },
  }
  const statements = await statementsOf(release, extended, product, given)
  if (statements.length === 0)
    throw new FactoryError(404, `nothing is stated on flaws of "${name}": neither its release nor --vex has a statement on its packages`)
  return merged(statements, address)
}

/** The same, signed. Throws FactoryError without a key. */
export const vexAttestation = (subject: Subject, document: VexDocument, key: KeyObject | undefined): string =>
  attested('the attestation of OpenVEX', subject, key, { predicateType: vexContext, predicate: document })

/** The statements about the releases of a version. Throws FactoryError. */
export async function releaseVex(releases: readonly Release[], given: readonly VexDocument[], address: string): Promise<VexDocument> {
  const of = (release: Release) =>
    statementsOf(release, release, { '@id': `pkg:generic/ichor@${release.version.slice(1)}?arch=${release.arch}` }, given)
  const statements = (await Promise.all(releases.map(of))).flat()
  if (statements.length === 0)
    throw new FactoryError(404, `nothing is stated on flaws of ${releases[0]?.version}: make it again with mkimage.sh, or give --vex`)
  return merged(statements, address)
}

/** What release and operator state about packages that are in something. */
async function statementsOf(release: Release, extended: Release, product: Product, given: readonly VexDocument[]): Promise<VexStatement[]> {
  const own = existsSync(pathOf(release, vexFile)) ? [await ownVex(release)] : []
  const known = new Map<string, { url: string; parsed: PackageUrl }[]>()
  for (const { externalRefs = [] } of parsedSbom(await sbomOf(extended)).packages)
    for (const { referenceLocator: url } of externalRefs) {
      const parsed = parsePackageUrl(url)
      if (parsed) known.set(parsed.path, [...(known.get(parsed.path) ?? []), { url, parsed }])
    }
  const urlsOf = (text: string) => {
    const wanted = parsePackageUrl(text)
    const found = wanted ? (known.get(wanted.path) ?? []).filter(({ parsed }) => namesPackage(wanted, parsed)) : []
    return found.map(({ url }) => url)
  }
  return [...own, ...given].flatMap((document) =>
    document.statements.flatMap((statement): VexStatement[] => {
      const urls = [...new Set(statement.products.flatMap(packagesOf).flatMap(urlsOf))]
      return urls.length === 0 ? [] : [restated(document, statement, { ...product, subcomponents: urls.map((url) => ({ '@id': url })) })]
    }),
  )
}

async function ownVex(release: Release): Promise<VexDocument> {
  try {
    return parseVex(await readDocument(release, vexFile, documentLimit))
  } catch (error) {
    if (error instanceof VexError) throw new FactoryError(500, `"${fileNameOf(release, vexFile)}" of the release: ${error.message}`)
    throw error
  }
}

/** A statement as part of another document: about a product of that, with its time, and with who made it. */
function restated(
  document: VexDocument,
  { '@id': _id, version: _version, status_notes, ...statement }: VexStatement,
  product: VexStatement['products'][number],
): VexStatement {
  const origin = `Stated by ${document.author} in ${document['@id']}.`
  const notes = status_notes === undefined ? origin : `${status_notes} ${origin}`
  return { ...statement, timestamp: timeOf(document, statement), products: [product], status_notes: notes }
}

/** A document whose identifier changes with what it states; of two statements on one flaw the later one holds, so they are in that order. */
function merged(statements: readonly VexStatement[], address: string): VexDocument {
  const time = ({ timestamp = '' }: VexStatement) => Date.parse(timestamp)
  const sorted = statements.toSorted((a, b) => time(a) - time(b))
  const hash = createHash('sha256').update(JSON.stringify(sorted)).digest('hex')
  return {
    ...{ '@context': vexContext, '@id': `${address}#${hash.slice(0, 32)}` },
    ...{ author: `image factory at ${new URL(address).origin}`, role: 'Document Creator' },
    ...{ timestamp: sorted.at(-1)?.timestamp ?? '', version: 1, tooling: 'talosctl factory serve', statements: sorted },
  }
}
