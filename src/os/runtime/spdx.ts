import * as v from 'valibot'

const none = ['NOASSERTION', 'NONE', '']

/** The part of an SPDX 2.3 document that is read (spdx.github.io/spdx-spec/v2.3). */
const spdxDocument = v.object({
  packages: v.optional(
    v.array(
      v.object({
        name: v.string(),
        versionInfo: v.optional(v.string(), ''),
        licenseDeclared: v.optional(v.string(), ''),
        externalRefs: v.optional(v.array(v.object({ referenceType: v.string(), referenceLocator: v.string() })), []),
      }),
    ),
    [],
  ),
})

/** A package that a document names. */
export interface SpdxItem {
  name: string
  version: string
  license?: string
  cpes: string[]
  purls: string[]
}

/** The packages of an SPDX document in JSON. Throws when it is none. */
export function spdxItems(text: string): SpdxItem[] {
  return v.parse(spdxDocument, JSON.parse(text)).packages.map(({ name, versionInfo, licenseDeclared, externalRefs }) => {
    const locators = (type: string) =>
      externalRefs.filter(({ referenceType }) => referenceType === type).map(({ referenceLocator }) => referenceLocator)
    return {
      name,
      version: versionInfo,
      ...(!none.includes(licenseDeclared) && { license: licenseDeclared }),
      cpes: locators('cpe23Type'),
      purls: locators('purl'),
    }
  })
}
