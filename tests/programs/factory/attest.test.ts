import { afterAll, beforeAll, expect, test } from 'bun:test'
import { createHash, createPublicKey, verify } from 'node:crypto'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { spdxDocument } from '../../../src/oci/spdx.ts'
import { Builds } from '../../../src/programs/factory/build/builds.ts'
import { version, writeProducts } from './built.ts'
import { newFolder, releaseKey, served } from './served.ts'

const folder = newFolder()
beforeAll(async () => {
  await writeProducts(folder)
  const document = spdxDocument(
    { name: 'root', version: '1', source: 'here', contains: [{ name: 'part', version: '2', source: 'there' }] },
    '',
  )
  writeFileSync(join(folder, 'ichor-amd64.spdx.json'), JSON.stringify(document))
})
afterAll(() => rmSync(folder, { recursive: true }))

const post = async ({ ask }: ReturnType<typeof served>) => {
  const answer = await ask('/schematics', { method: 'POST', body: '{customization: {extraKernelArgs: [a]}}' })
  return ((await answer.json()) as { id: string }).id
}
const sha256 = (bytes: Uint8Array | string) => createHash('sha256').update(bytes).digest('hex')

test('the SPDX document of an image describes it, and lists the parts of the release in it', async () => {
  await using factory = served(folder)
  const id = await post(factory)
  const base = `/image/${id}/${version}/metal-amd64-uki.efi`
  const sum = sha256(Buffer.from(await (await factory.ask(base)).arrayBuffer()))
  const answer = await factory.ask(`${base}.spdx.json`)
  expect(answer.headers.get('content-type')).toBe('application/spdx+json')
  const { packages, relationships, name } = (await answer.json()) as ReturnType<typeof spdxDocument>
  expect(name).toBe(`metal-amd64-uki.efi-${version}`)
  expect(packages.map((each) => each.name)).toEqual(['metal-amd64-uki.efi', 'root', 'part'])
  expect(packages[0]?.checksums).toEqual([{ algorithm: 'SHA256', checksumValue: sum }])
  const nameOf = (wanted: string) => packages.find(({ SPDXID }) => SPDXID === wanted)?.name ?? wanted
  expect(relationships.map((each) => [nameOf(each.spdxElementId), each.relationshipType, nameOf(each.relatedSpdxElement)])).toEqual([
    ['SPDXRef-DOCUMENT', 'DESCRIBES', 'metal-amd64-uki.efi'],
    ['metal-amd64-uki.efi', 'CONTAINS', 'root'],
    ['root', 'CONTAINS', 'part'],
  ])
  const release = await (await factory.ask(`/spdx/${id}/${version}/amd64`)).text()
  expect(release).toBe(readFileSync(join(folder, 'ichor-amd64.spdx.json'), 'utf8'))
})

test('the provenance of an image names its hash, schematic and release, and is signed', async () => {
  await using factory = served(folder, { externalUrl: 'https://factory.example.org' })
  const id = await post(factory)
  const base = `/image/${id}/${version}/installer-amd64.tar`
  const sum = sha256(Buffer.from(await (await factory.ask(base)).arrayBuffer()))
  const { payload, payloadType, signatures } = (await (await factory.ask(`${base}.provenance.json`)).json()) as {
    payload: string
    payloadType: string
    signatures: { sig: string }[]
  }
  const statement = Buffer.from(payload, 'base64')
  const signed = Buffer.concat([Buffer.from(`DSSEv1 28 application/vnd.in-toto+json ${statement.length} `), statement])
  expect(payloadType).toBe('application/vnd.in-toto+json')
  expect(verify(null, signed, createPublicKey(releaseKey), Buffer.from(signatures[0]?.sig ?? '', 'base64'))).toBe(true)
  const { subject, predicate } = JSON.parse(statement.toString())
  expect(subject).toEqual([{ name: 'installer-amd64.tar', digest: { sha256: sum } }])
  expect(predicate.buildDefinition.externalParameters).toEqual({ schematic: id, version, image: 'installer-amd64.tar' })
  const dependencies = predicate.buildDefinition.resolvedDependencies.map(({ digest }: { digest: { sha256: string } }) => digest.sha256)
  expect(dependencies).toEqual([sha256(readFileSync(join(folder, 'ichor-amd64.manifest'))), id])
  expect(predicate.runDetails.builder).toEqual({ id: 'https://factory.example.org' })
})

test('what is not there is named', async () => {
  const builds = new Builds()
  await using factory = served(folder, { workshop: { builds, signers: {} } })
  const id = await post(factory)
  const reason = async (path: string) => (await factory.ask(path)).text()
  expect(await reason(`/image/${id}/${version}/metal-amd64-uki.efi.provenance.json`)).toContain('start the factory with --key')
  writeFileSync(join(folder, 'ichor-amd64.spdx.json'), '{')
  expect(await reason(`/image/${id}/${version}/metal-amd64-uki.efi.spdx.json`)).toContain('is no SPDX document')
  builds.close()
})
