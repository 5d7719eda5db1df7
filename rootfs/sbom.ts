/** The SBOM of the root file system. */
import { type SbomPart, type SpdxDocument, spdxDocument } from '../src/oci/spdx.ts'

/** Where the document lies in the root file system. */
export const sbomPath = '/usr/share/spdx/ichor.spdx.json'

/** What the root file system is made of. */
export const sbomOf = (version: string, created: string, contains: readonly SbomPart[]): SpdxDocument =>
  spdxDocument(
    { name: 'ichor-rootfs', version, source: 'the root file system of an Ichor node', license: 'NOASSERTION', contains },
    created,
  )
