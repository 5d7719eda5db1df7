import { expect, test } from 'bun:test'
import { sbomOf } from '../../rootfs/sbom.ts'
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
