import { afterAll, beforeAll, expect, test } from 'bun:test'
import { createHash, createPublicKey, verify } from 'node:crypto'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseVex, type VexDocument, vexContext } from '../../../src/oci/openvex.ts'
import { spdxDocument } from '../../../src/oci/spdx.ts'
import { Builds } from '../../../src/programs/factory/build/builds.ts'
import { version, writeProducts } from './built.ts'
import { newFolder, releaseKey, served } from './served.ts'

const folder = newFolder()
const vexPath = join(folder, 'ichor-amd64.vex.json')
const mount = 'pkg:deb/debian/mount@2.38?arch=amd64'
const udev = 'pkg:deb/debian/udev@252?arch=amd64'

const documentOf = (id: string, timestamp: string, statements: VexDocument['statements']): VexDocument => ({
  ...{ '@context': vexContext, '@id': `https://example.org/${id}`, author: id, timestamp, version: 1, statements },
})
const about = (name: string, ...ids: string[]) => ({
  ...{ vulnerability: { name }, status: 'not_affected' as const, justification: 'component_not_present' as const },
  products: ids.map((each) => ({ '@id': each })),
})

beforeAll(async () => {
  await writeProducts(folder)
  const parts = [
    { name: 'mount', version: '2.38', source: 'Debian', purl: mount },
    { name: 'udev', version: '252', source: 'Debian', purl: udev },
  ]
  writeFileSync(
    join(folder, 'ichor-amd64.spdx.json'),
    JSON.stringify(spdxDocument({ name: 'root', version: '1', source: 'here', contains: parts }, '')),
  )
})
afterAll(() => rmSync(folder, { recursive: true }))

const post = async ({ ask }: ReturnType<typeof served>) => {
  const answer = await ask('/schematics', { method: 'POST', body: '{customization: {extraKernelArgs: [a]}}' })
  return ((await answer.json()) as { id: string }).id
}
const sha256 = (bytes: Uint8Array | string) => createHash('sha256').update(bytes).digest('hex')

const given = [
  documentOf('operators', '2026-02-01T00:00:00Z', [
    about('CVE-2', 'pkg:deb/debian/udev'),
    { ...about('CVE-3', 'pkg:deb/debian/mount@2.38'), timestamp: '2026-01-15T00:00:00Z' },
    about('CVE-4', 'pkg:deb/debian/mount@2.37'),
    about('CVE-5', 'pkg:deb/debian/perl'),
  ]),
]

test('the document of an image has what release and operator state about packages in it', async () => {
  writeFileSync(
    vexPath,
    JSON.stringify(documentOf('release', '2026-01-01T00:00:00Z', [{ ...about('CVE-1', mount), status_notes: 'Why.' }])),
  )
  await using factory = served(folder, { vex: given, externalUrl: 'https://factory.example.org' })
  const id = await post(factory)
  const base = `/image/${id}/${version}/metal-amd64-uki.efi`
  const sum = sha256(Buffer.from(await (await factory.ask(base)).arrayBuffer()))
  const text = await (await factory.ask(`${base}.vex.json`)).text()
  const document = parseVex(text)
  expect(document['@id']).toStartWith(`https://factory.example.org${base}.vex.json#`)
  expect([document.author, document.timestamp]).toEqual(['image factory at https://factory.example.org', '2026-02-01T00:00:00Z'])
  const known = document.statements.map((each) => [
    each.vulnerability.name,
    each.timestamp,
    each.products[0]?.subcomponents?.[0]?.['@id'],
    each.status_notes,
  ])
  expect(known).toEqual([
    ['CVE-1', '2026-01-01T00:00:00Z', mount, 'Why. Stated by release in https://example.org/release.'],
    ['CVE-3', '2026-01-15T00:00:00Z', mount, 'Stated by operators in https://example.org/operators.'],
    ['CVE-2', '2026-02-01T00:00:00Z', udev, 'Stated by operators in https://example.org/operators.'],
  ])
  for (const { products } of document.statements) {
    expect(products[0]?.['@id']).toBe(`pkg:generic/metal-amd64-uki.efi@${version.slice(1)}?arch=amd64&checksum=sha256:${sum}`)
    expect(products[0]?.hashes).toEqual({ 'sha-256': sum })
  }
  expect(await (await factory.ask(`${base}.vex.json`)).text()).toBe(text)
  const envelope = (await (await factory.ask(`${base}.vex-attestation.json`)).json()) as { payload: string; signatures: { sig: string }[] }
  const statement = Buffer.from(envelope.payload, 'base64')
  const signed = Buffer.concat([Buffer.from(`DSSEv1 28 application/vnd.in-toto+json ${statement.length} `), statement])
  expect(verify(null, signed, createPublicKey(releaseKey), Buffer.from(envelope.signatures[0]?.sig ?? '', 'base64'))).toBe(true)
  expect(JSON.parse(statement.toString())).toEqual({
    _type: 'https://in-toto.io/Statement/v1',
    subject: [{ name: 'metal-amd64-uki.efi', digest: { sha256: sum } }],
    predicateType: vexContext,
    predicate: JSON.parse(text),
  })
  const release = parseVex(await (await factory.ask(`/vex/${version}/vex.json`)).text())
  expect(release.statements.map(({ vulnerability }) => vulnerability.name)).toEqual(['CVE-1', 'CVE-3', 'CVE-2'])
  expect(release.statements[0]?.products[0]?.['@id']).toBe(`pkg:generic/ichor@${version.slice(1)}?arch=amd64`)
})

test('the page leads to what is stated about images', async () => {
  await using factory = served(folder, { vex: given })
  const id = await post(factory)
  const page = await (await factory.ask(`/?schematic=${id}&version=${version}`)).text()
  const links = ['spdx.json', 'vex.json', 'vex-attestation.json', 'provenance.json'].map((each) => `metal-amd64-uki.efi.${each}`)
  for (const link of links) {
    expect(page).toContain(`href="/image/${id}/${version}/${link}"`)
    expect((await factory.ask(`/image/${id}/${version}/${link}`)).status).toBe(200)
  }
})

test('where nothing is stated, or what is there is no document, one line states so', async () => {
  rmSync(vexPath)
  const builds = new Builds()
  await using factory = served(folder, { workshop: { builds, signers: {} } })
  const id = await post(factory)
  const of = async (path: string) => {
    const answer = await factory.ask(path)
    return [answer.status, await answer.text()]
  }
  const image = `/image/${id}/${version}/metal-amd64-uki.efi`
  expect(await of(`${image}.vex.json`)).toEqual([
    404,
    'nothing is stated on flaws of "metal-amd64-uki.efi": neither its release nor --vex has a statement on its packages\n',
  ])
  expect(await of(`/vex/${version}/vex.json`)).toEqual([
    404,
    `nothing is stated on flaws of ${version}: make it again with mkimage.sh, or give --vex\n`,
  ])
  writeFileSync(vexPath, '{}')
  expect(await of(`${image}.vex.json`)).toEqual([
    500,
    expect.stringContaining('"ichor-amd64.vex.json" of the release: @context is missing'),
  ])
  writeFileSync(vexPath, JSON.stringify(documentOf('release', '2026-01-01T00:00:00Z', [about('CVE-1', mount)])))
  expect(await of(`${image}.vex-attestation.json`)).toEqual([400, 'the attestation of OpenVEX is signed: start the factory with --key\n'])
  builds.close()
})
