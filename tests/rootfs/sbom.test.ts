import { expect, test } from 'bun:test'
import { sbomOf } from '../../rootfs/sbom.ts'
import { stated, vexOf } from '../../rootfs/vex.ts'
import { parseVex } from '../../src/oci/openvex.ts'
import type { SbomPart } from '../../src/oci/spdx.ts'

const parts: SbomPart[] = [
  {
    name: 'kube',
    version: '1.36.3',
    source: 'rootfs/kube',
    sha256: 'b'.repeat(64),
    contains: [{ name: 'k8s.io/api', version: 'v0.36.3', purl: 'pkg:golang/k8s.io/api@v0.36.3', source: 'Go module', sum: 'h1:abc=' }],
  },
  {
    name: 'cni',
    version: '1.9.1',
    source: 'rootfs/cni',
    contains: [{ name: 'k8s.io/api', version: 'v0.36.3', purl: 'pkg:golang/k8s.io/api@v0.36.3', source: 'Go module', sum: 'h1:abc=' }],
  },
]
const created = '2026-01-02T03:04:05Z'

test('every part is a package with version, source and hash, once', () => {
  const document = sbomOf('1.13.0', created, parts)
  expect(document.spdxVersion).toBe('SPDX-2.3')
  expect(document.creationInfo).toEqual({ created, creators: ['Tool: ichor-rootfs'] })
  expect(document.packages.map(({ name, versionInfo }) => `${name} ${versionInfo}`)).toEqual([
    'ichor-rootfs 1.13.0',
    'kube 1.36.3',
    'k8s.io/api v0.36.3',
    'cni 1.9.1',
  ])
  const [, kube, api] = document.packages
  expect(kube?.checksums).toEqual([{ algorithm: 'SHA256', checksumValue: 'b'.repeat(64) }])
  expect(kube?.sourceInfo).toBe('rootfs/kube')
  expect(api?.comment).toBe('go.sum h1:abc=')
  expect(api?.externalRefs?.[0]?.referenceLocator).toBe('pkg:golang/k8s.io/api@v0.36.3')
})

test('identifiers are what SPDX allows, unique, and every relationship leads somewhere', () => {
  const { packages, relationships } = sbomOf('1.13.0', created, parts)
  const ids = new Set(['SPDXRef-DOCUMENT', ...packages.map(({ SPDXID }) => SPDXID)])
  expect(ids.size).toBe(packages.length + 1)
  for (const id of ids) expect(id).toMatch(/^SPDXRef-[A-Za-z0-9.-]+$/)
  for (const { spdxElementId, relatedSpdxElement } of relationships) {
    expect(ids.has(spdxElementId)).toBe(true)
    expect(ids.has(relatedSpdxElement)).toBe(true)
  }
  expect(relationships.filter(({ relationshipType }) => relationshipType === 'DESCRIBES')).toHaveLength(1)
})

test('equal parts give equal documents, other parts another namespace', () => {
  const once = sbomOf('1.13.0', created, parts)
  expect(sbomOf('1.13.0', created, structuredClone(parts))).toEqual(once)
  expect(sbomOf('1.13.0', created, parts.slice(1)).documentNamespace).not.toBe(once.documentNamespace)
})

const names = [...new Set(stated.flatMap(({ packages }) => packages))]
const described = sbomOf(
  '1.13.0',
  '',
  names.map((name) => ({ name, version: '1', source: 'Debian', purl: `pkg:deb/debian/${name}@1?arch=amd64` })),
)

test('what is stated of a release is an OpenVEX document about its packages', () => {
  const document = vexOf({ arch: 'amd64', sbom: described, paths: ['/usr/bin/mount', '/usr/lib/libkrb5.so.3'] })
  expect(parseVex(JSON.stringify(document))).toEqual(document)
  const flaws = document.statements.map(({ vulnerability }) => vulnerability.name)
  expect(flaws).toContain('CVE-2022-0563')
  expect(new Set(flaws).size).toBe(flaws.length)
  const [first] = document.statements
  expect(first?.products[0]?.['@id']).toBe('pkg:generic/ichor@1.13.0?arch=amd64')
  expect(first?.products[0]?.subcomponents).toContainEqual({ '@id': 'pkg:deb/debian/util-linux@1?arch=amd64' })
  expect(vexOf({ arch: 'amd64', sbom: described, paths: [] })).toEqual(document)
})

test('a statement that is not true of a release ends the build', () => {
  expect(() => vexOf({ arch: 'amd64', sbom: described, paths: ['/usr/bin/chsh'] })).toThrow('"/usr/bin/chsh" is in the root file system')
  expect(() => vexOf({ arch: 'amd64', sbom: described, paths: ['/usr/lib/x86_64-linux-gnu/libgssrpc.so.4'] })).toThrow('CVE-2024-26458')
  expect(() => vexOf({ arch: 'amd64', sbom: sbomOf('1', '', []), paths: [] })).toThrow('is not in the SBOM')
})
