/** What something is made of, as an SPDX 2.3 document (spdx.github.io/spdx-spec/v2.3). */

/** One part: a program, a module linked into it, or a package taken apart. */
export interface SbomPart {
  name: string
  version: string
  /** Package URL, which names the source of a package (github.com/package-url/purl-spec). */
  purl?: string
  /** What it was made from, in words. */
  source: string
  /** Of the program as built or the package as taken, hex. */
  sha256?: string
  /** A Go module's hash as in go.sum. */
  sum?: string | undefined
  license?: string
  /** What is linked or bundled into it. */
  contains?: readonly SbomPart[]
}

/** An SPDX package, as far as it is used here. */
export interface SpdxPackage {
  SPDXID: string
  name: string
  versionInfo: string
  downloadLocation: string
  filesAnalyzed: false
  sourceInfo: string
  licenseConcluded: string
  licenseDeclared: string
  copyrightText: string
  checksums?: { algorithm: 'SHA256'; checksumValue: string }[]
  externalRefs?: { referenceCategory: 'PACKAGE-MANAGER'; referenceType: 'purl'; referenceLocator: string }[]
  comment?: string
}

/** An SPDX document, as far as it is used here. */
export interface SpdxDocument {
  spdxVersion: 'SPDX-2.3'
  dataLicense: 'CC0-1.0'
  SPDXID: 'SPDXRef-DOCUMENT'
  name: string
  documentNamespace: string
  creationInfo: { created: string; creators: string[] }
  packages: SpdxPackage[]
  relationships: { spdxElementId: string; relatedSpdxElement: string; relationshipType: 'DESCRIBES' | 'CONTAINS' }[]
}

/** Writes a part with what it contains as a document; equal parts give equal documents. `created` is an RFC 3339 time. */
export function spdxDocument(root: SbomPart, created: string): SpdxDocument {
  const packages = new Map<string, SpdxPackage>()
  const relationships: SpdxDocument['relationships'] = []
  const add = (part: SbomPart): string => {
    const { name, version } = part
    const id = `SPDXRef-${name.replace(/[^A-Za-z0-9.-]+/g, '-')}-${hashOf({ name, version }).slice(0, 12)}`
    if (!packages.has(id)) packages.set(id, packageOf(id, part))
    return id
  }
  const addBelow = (id: string, part: SbomPart) => {
    for (const inner of part.contains ?? []) {
      const innerId = add(inner)
      addBelow(innerId, inner)
      relationships.push({ spdxElementId: id, relatedSpdxElement: innerId, relationshipType: 'CONTAINS' })
    }
  }
  const rootId = add(root)
  relationships.push({ spdxElementId: 'SPDXRef-DOCUMENT', relatedSpdxElement: rootId, relationshipType: 'DESCRIBES' })
  addBelow(rootId, root)
  const content = { packages: [...packages.values()], relationships }
  const title = `${root.name}-${root.version}`
  return {
    spdxVersion: 'SPDX-2.3',
    dataLicense: 'CC0-1.0',
    SPDXID: 'SPDXRef-DOCUMENT',
    name: title,
    documentNamespace: `https://spdx.org/spdxdocs/${title}-${hashOf(content).slice(0, 32)}`,
    creationInfo: { created, creators: ['Tool: ichor-rootfs'] },
    ...content,
  }
}

const hashOf = (value: object): string => new Bun.CryptoHasher('sha256').update(JSON.stringify(value)).digest('hex')

function packageOf(SPDXID: string, part: SbomPart): SpdxPackage {
  return {
    SPDXID,
    name: part.name,
    versionInfo: part.version,
    downloadLocation: 'NOASSERTION',
    filesAnalyzed: false,
    sourceInfo: part.source,
    licenseConcluded: 'NOASSERTION',
    licenseDeclared: part.license ?? 'NOASSERTION',
    copyrightText: 'NOASSERTION',
    ...(part.sha256 && { checksums: [{ algorithm: 'SHA256' as const, checksumValue: part.sha256 }] }),
    ...(part.purl && {
      externalRefs: [{ referenceCategory: 'PACKAGE-MANAGER' as const, referenceType: 'purl' as const, referenceLocator: part.purl }],
    }),
    ...(part.sum && { comment: `go.sum ${part.sum}` }),
  }
}
