/**
 * Flaws that scanners report for the Debian packages in a release, and that do not concern it because of what it is made of. Only what
 * a build can check is stated here: files that the root file system does not have. A statement that is no longer true, or about no
 * package of the release, ends the build.
 */
import { type VexDocument, type VexStatement, vexContext } from '../src/oci/openvex.ts'
import { namesPackage, parsePackageUrl } from '../src/oci/package-url.ts'
import type { SpdxDocument } from '../src/oci/spdx.ts'

/** A statement, and what it follows from. */
interface Stated {
  readonly flaws: readonly string[]
  /** Binary packages of Debian. */
  readonly packages: readonly string[]
  /** Names of files of which the root file system has none, with "*" for any characters. */
  readonly absent: readonly string[]
  readonly justification: NonNullable<VexStatement['justification']>
  readonly why: string
  readonly since: string
}

const utilLinux = ['libblkid1', 'libmount1', 'libsmartcols1', 'libuuid1', 'mount', 'util-linux']
const kerberos = ['libgssapi-krb5-2', 'libk5crypto3', 'libkrb5-3', 'libkrb5support0']
const since = '2026-11-28T00:00:00Z'

export const stated: readonly Stated[] = [
  {
    flaws: ['CVE-2022-0563', 'CVE-2025-14104'],
    packages: utilLinux,
    absent: ['chfn', 'chsh'],
    justification: 'vulnerable_code_not_present',
    why: 'The flaw is in the programs chfn and chsh. The release has neither.',
    since,
  },
  {
    flaws: ['CVE-2023-31437', 'CVE-2023-31438', 'CVE-2023-31439'],
    packages: ['libsystemd0', 'libudev1', 'udev'],
    absent: ['journalctl', 'systemd-journald', 'systemd-journal-*'],
    justification: 'vulnerable_code_not_in_execute_path',
    why: 'The flaw is in how sealed logs of journald are verified and shown. The release has neither journald nor journalctl, and its logs are no journals.',
    since,
  },
  {
    flaws: ['CVE-2018-5709'],
    packages: kerberos,
    absent: ['kdb5_util', 'kadmind', 'krb5kdc'],
    justification: 'vulnerable_code_not_present',
    why: 'The flaw is in how kdb5_util reads dumps of a database of principals. The release has only the libraries of clients.',
    since,
  },
  {
    flaws: ['CVE-2024-26458'],
    packages: kerberos,
    absent: ['libgssrpc.so*'],
    justification: 'vulnerable_code_not_present',
    why: 'The flaw is in libgssrpc, which the release does not have.',
    since,
  },
]

/** A release, as far as statements are about it. */
interface Described {
  readonly arch: string
  readonly sbom: SpdxDocument
  /** The paths of its root file system. */
  readonly paths: Iterable<string>
}

/** The document of a release. Throws when a statement is not true of it. */
export function vexOf({ arch, sbom, paths }: Described, statements = stated): VexDocument {
  const version = sbom.packages[0]?.versionInfo ?? ''
  const files = [...paths].map((path) => ({ path, name: path.slice(path.lastIndexOf('/') + 1) }))
  const urls = sbom.packages.flatMap(({ externalRefs = [] }) => externalRefs.map(({ referenceLocator }) => referenceLocator))
  const written = statements.flatMap(({ flaws, packages, absent, justification, why, since: timestamp }): VexStatement[] => {
    const of = `rootfs/vex.ts: ${flaws.join(', ')}`
    const globs = absent.map((pattern) => new Bun.Glob(pattern))
    const present = files.find(({ name }) => globs.some((glob) => glob.match(name)))
    if (present) throw new Error(`${of}: "${present.path}" is in the root file system: take the statement back`)
    const subcomponents = packages.map((name) => {
      const wanted = parsePackageUrl(`pkg:deb/debian/${name}`)
      const found = urls.find((url) => {
        const known = parsePackageUrl(url)
        return wanted && known && namesPackage(wanted, known)
      })
      if (found === undefined) throw new Error(`${of}: package "${name}" is not in the SBOM: take it out of the statement`)
      return { '@id': found }
    })
    const products = [{ '@id': `pkg:generic/ichor@${version}?arch=${arch}`, subcomponents }]
    return flaws.map((name) => ({
      vulnerability: { name },
      ...{ timestamp, products, status: 'not_affected', justification, status_notes: why },
    }))
  })
  const hash = new Bun.CryptoHasher('sha256').update(JSON.stringify(written)).digest('hex')
  const timestamp =
    written
      .map((each) => each.timestamp ?? '')
      .sort()
      .at(-1) ?? ''
  return {
    ...{ '@context': vexContext, '@id': `https://openvex.dev/docs/public/vex-${hash}`, author: 'Ichor', role: 'Document Creator' },
    ...{ timestamp, version: 1, tooling: 'mkimage.sh', statements: written },
  }
}
