/** The SBOM of a release with the extensions that were added. */
import type { SpdxDocument, SpdxPackage } from '../../../oci/spdx.ts'
import { parsedSbom } from '../attest.ts'
import type { Extension } from '../root/extend.ts'

/** The document with a package for each extension. Throws FactoryError for one that is no SPDX document. */
export function withExtensions(text: string, extensions: readonly Extension[]): string {
  const document = parsedSbom(text)
  const [system] = document.relationships.filter(({ relationshipType }) => relationshipType === 'DESCRIBES')
  const added = extensions.map(({ metadata: { name, version, author } }): SpdxPackage => {
    const known = { SPDXID: `SPDXRef-extension-${name.replace(/[^A-Za-z0-9.-]+/g, '-')}`, name, versionInfo: version }
    return {
      ...known,
      ...{ downloadLocation: 'NOASSERTION', filesAnalyzed: false, sourceInfo: `system extension${author && ` by ${author}`}` },
      ...{ licenseConcluded: 'NOASSERTION', licenseDeclared: 'NOASSERTION', copyrightText: 'NOASSERTION' },
    }
  })
  const contained = added.map(({ SPDXID }): SpdxDocument['relationships'][number] => ({
    spdxElementId: system?.relatedSpdxElement ?? document.SPDXID,
    relatedSpdxElement: SPDXID,
    relationshipType: 'CONTAINS',
  }))
  return JSON.stringify({
    ...document,
    packages: [...document.packages, ...added],
    relationships: [...document.relationships, ...contained],
  })
}
