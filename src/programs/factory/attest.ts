/** Documents about an image: what it is made of (SPDX 2.3), and how it came about (in-toto, SLSA). */
import { createHash, createPublicKey, type KeyObject, sign } from 'node:crypto'
import type { SpdxDocument, SpdxPackage } from '../../oci/spdx.ts'
import { readDocument } from './build/read-file.ts'
import { FactoryError } from './factory-error.ts'
import type { Release } from './releases.ts'
import type { Schematic } from './schematic.ts'

/** The image that a document is about. */
export interface Subject {
  readonly name: string
  /** Hex. */
  readonly sha256: string
  readonly release: Release
  readonly schematic: Schematic
}

export const sbomFile = 'ichor-amd64.spdx.json'
const documentLimit = 16 << 20

/** What a release is made of. Throws FactoryError. */
export const sbomOf = (release: Release): Promise<string> => readDocument(release, sbomFile, documentLimit)

/** What an image is made of: itself with its hash, and the parts of its release in it. Throws FactoryError. */
export async function imageSbom({ name, sha256, release, schematic }: Subject): Promise<string> {
  const document = parsedSbom(await sbomOf(release))
  const id = `SPDXRef-image-${sha256.slice(0, 12)}`
  const image: SpdxPackage = {
    ...{ SPDXID: id, name, versionInfo: release.version.slice(1), downloadLocation: 'NOASSERTION', filesAnalyzed: false },
    ...{ sourceInfo: `built of the release for schematic ${schematic.id}` },
    ...{ licenseConcluded: 'NOASSERTION', licenseDeclared: 'NOASSERTION', copyrightText: 'NOASSERTION' },
    checksums: [{ algorithm: 'SHA256', checksumValue: sha256 }],
  }
  const described = document.relationships.filter(({ relationshipType }) => relationshipType === 'DESCRIBES')
  const others = document.relationships.filter(({ relationshipType }) => relationshipType !== 'DESCRIBES')
  const relationships: SpdxDocument['relationships'] = [
    { spdxElementId: document.SPDXID, relatedSpdxElement: id, relationshipType: 'DESCRIBES' },
    ...described.map(({ relatedSpdxElement }) => ({ spdxElementId: id, relatedSpdxElement, relationshipType: 'CONTAINS' as const })),
    ...others,
  ]
  const documentNamespace = `${document.documentNamespace}-${sha256.slice(0, 32)}`
  return JSON.stringify({
    ...document,
    name: `${name}-${release.version}`,
    documentNamespace,
    packages: [image, ...document.packages],
    relationships,
  })
}

/** The SBOM of a release. Throws FactoryError. */
export function parsedSbom(text: string): SpdxDocument {
  const wrong = new FactoryError(500, `"${sbomFile}" of the release is no SPDX document: make it again with mkimage.sh`)
  try {
    const document = JSON.parse(text) as Partial<SpdxDocument>
    if (document.spdxVersion !== 'SPDX-2.3' || !Array.isArray(document.packages) || !Array.isArray(document.relationships)) throw wrong
    return document as SpdxDocument
  } catch (error) {
    throw error instanceof SyntaxError ? wrong : error
  }
}

const statementType = 'application/vnd.in-toto+json'

/**
 * How an image came about (in-toto Statement v1 with SLSA Provenance v1), signed. `builder` is the address of the factory. Throws
 * FactoryError without a key.
 */
export async function provenance(subject: Subject, builder: string, key: KeyObject | undefined): Promise<string> {
  const { name, release, schematic } = subject
  const manifest = await readDocument(release, 'ichor-amd64.manifest')
  return attested('provenance', subject, key, {
    predicateType: 'https://slsa.dev/provenance/v1',
    predicate: {
      buildDefinition: {
        buildType: `${builder}/image`,
        externalParameters: { schematic: schematic.id, version: release.version, image: name },
        resolvedDependencies: [
          { name: 'manifest', uri: `${builder}/versions#${release.version}`, digest: { sha256: hashOf(manifest) } },
          { name: 'schematic', uri: `${builder}/schematics/${schematic.id}`, digest: { sha256: schematic.id } },
        ],
      },
      runDetails: { builder: { id: builder } },
    },
  })
}

/** A statement about an image (in-toto Statement v1), signed in an envelope (DSSE 1.0). Throws FactoryError without a key. */
export function attested(
  what: string,
  { name, sha256 }: Pick<Subject, 'name' | 'sha256'>,
  key: KeyObject | undefined,
  stated: { readonly predicateType: string; readonly predicate: object },
): string {
  if (!key) throw new FactoryError(400, `${what} is signed: start the factory with --key`)
  const statement = Buffer.from(
    JSON.stringify({ _type: 'https://in-toto.io/Statement/v1', subject: [{ name, digest: { sha256 } }], ...stated }),
  )
  // The encoding that is signed states type and length, so that no other text is signed by the same bytes.
  const signed = Buffer.concat([Buffer.from(`DSSEv1 ${statementType.length} ${statementType} ${statement.length} `), statement])
  const keyid = hashOf(createPublicKey(key).export({ type: 'spki', format: 'der' }))
  const signatures = [{ keyid, sig: sign(null, signed, key).toString('base64') }]
  return JSON.stringify({ payload: statement.toString('base64'), payloadType: statementType, signatures })
}

const hashOf = (content: string | Uint8Array): string => createHash('sha256').update(content).digest('hex')
