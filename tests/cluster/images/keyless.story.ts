/**
 * Images that a node pulls only with a keyless signature: an authority, logs and an authority for time of its own, as a company
 * without the Internet has them, vouch for who signed, and containerd has that verified before it fetches anything.
 */

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { newCA } from '../../../src/pki/certificate.ts'
import { SigstoreInstance } from '../../os/security/sigstore-instance.ts'
import { type Signature, servePart, simpleSigning } from '../../support/private-registry.ts'
import { eventually, succeeded, TestCluster } from '../cluster.ts'

const cluster = new TestCluster('keyless')
const node = 'keyless-controlplane-1'
const [gateway, address] = ['10.95.0.1', '10.95.0.2']
const [instance, stranger] = [new SigstoreInstance(), new SigstoreInstance()]
/** Made once: it is signed again each time. */
const { trustedRoot } = instance
const company = newCA({ kind: 'ecdsa', subject: { commonName: 'company' } })
const identity = { issuer: 'https://accounts.test', subject: 'builder@company.test' }
const another = { subject: 'visitor@company.test' }

type Bundle = ReturnType<SigstoreInstance['bundle']>
const bundled = (bundle: unknown): Signature => ({
  ...{ suffix: '', mediaType: 'application/vnd.dev.sigstore.bundle.v0.3+json', bytes: JSON.stringify(bundle) },
})
const layered = ({ payload, annotations }: ReturnType<SigstoreInstance['layer']>) => simpleSigning(payload, annotations)

/** A bundle whose entry is in the log by a proof of another tree. */
function withAlteredProof({ verificationMaterial, ...rest }: Bundle): unknown {
  const [entry] = verificationMaterial.tlogEntries
  const inclusionProof = { ...entry!.inclusionProof, hashes: [Buffer.alloc(32).toString('base64')] }
  return { ...rest, verificationMaterial: { ...verificationMaterial, tlogEntries: [{ ...entry, inclusionProof }] } }
}

/** A payload whose promise is of another entry. */
function withOtherPromise(digest: string): Signature {
  const [layer, other] = [instance.layer(digest), instance.layer(digest)]
  const entryOf = ({ annotations }: typeof layer) => JSON.parse(annotations['dev.sigstore.cosign/bundle']!)
  const entry = { ...entryOf(layer), SignedEntryTimestamp: entryOf(other).SignedEntryTimestamp }
  return simpleSigning(layer.payload, { ...layer.annotations, 'dev.sigstore.cosign/bundle': JSON.stringify(entry) })
}

const authority = /its certificate is of no trusted authority, was not valid when the image was signed, or is in no trusted log of/
const notProven = /its entry in the transparency log is of no trusted log, of another signature or not proven$/
const visitor = /it is signed by "visitor@company\.test" of the issuer "https:\/\/accounts\.test", whom the rule does not name$/

const accepted: Record<string, (digest: string) => Signature> = {
  'story/bundle': (digest) => bundled(instance.bundle(digest)),
  'story/layer': (digest) => layered(instance.layer(digest)),
  'story/timestamped': (digest) => bundled(instance.bundle(digest, { timestamped: true })),
  'story/timestamped-layer': (digest) => layered(instance.layer(digest, { timestamped: true })),
}
const refused: Record<string, [(digest: string) => Signature, RegExp]> = {
  'story/visitor': [(digest) => bundled(instance.bundle(digest, another)), visitor],
  'story/visitor-layer': [(digest) => layered(instance.layer(digest, another)), visitor],
  'story/altered': [(digest) => bundled(withAlteredProof(instance.bundle(digest))), notProven],
  'story/altered-layer': [withOtherPromise, notProven],
  'story/stranger': [(digest) => bundled(stranger.bundle(digest)), authority],
  'story/late': [(digest) => bundled(instance.bundle(digest, { signedAt: new Date('2026-06-01T12:20:00Z') })), authority],
  'story/other-image': [() => bundled(instance.bundle(`sha256:${'0'.repeat(64)}`)), /a bundle of it is about another image$/],
}

let registry: ReturnType<typeof servePart>
beforeAll(async () => {
  await cluster.create('--cidr', '10.95.0.0/24', '--workers', '0')
  registry = servePart(gateway, company, 'registry.test', (digest) =>
    Object.fromEntries([
      ...Object.entries(accepted).map(([name, sign]) => [name, sign(digest)]),
      ...Object.entries(refused).map(([name, [sign]]) => [name, sign(digest)]),
    ]),
  )
  await apply({ kind: 'TrustedRootsConfig', name: 'company', certificates: company.crt })
  await eventually(async () => succeeded(await pull('story/part')), 60)
  const image = `${gateway}:${registry.port}/*`
  await apply({ kind: 'ImageVerificationConfig', rules: [{ image, keyless: identity }] })
}, 300_000)
afterAll(async () => {
  await registry?.close()
  await cluster.end()
})

const on = async (...args: string[]) => succeeded(await cluster.talosctl('-n', address, ...args)).stdout
const apply = (document: object) => on('patch', 'mc', '-p', JSON.stringify({ apiVersion: 'v1alpha1', ...document }))
const named = (repository: string) => `${gateway}:${registry.port}/${repository}:1`
const pull = (repository: string) => cluster.talosctl('-n', address, 'image', 'pull', named(repository))

/** The only line that a refused pull writes. */
async function refusalOf(repository: string): Promise<string> {
  const { code, stderr } = await pull(repository)
  expect([code, stderr]).toEqual([1, expect.stringMatching(/^[^\n]* is refused by rule 0000: [^\n]*\n$/)])
  return stderr.trimEnd()
}

/** Starts a pod of an image, and returns the messages of its events with this reason once there are any. */
async function podEvent(name: string, repository: string, reason: string): Promise<string> {
  const containers = [{ name: 'part', image: named(repository), imagePullPolicy: 'Always' }]
  const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name }, spec: { nodeName: node, restartPolicy: 'Never', containers } }
  succeeded(await cluster.kubectl(['create', '-f', '-'], JSON.stringify(pod)))
  const selector = `involvedObject.name=${name},reason=${reason}`
  return eventually(async () => {
    const found = await cluster.kubectl(['get', 'events', '--field-selector', selector, '-o', 'jsonpath={.items[*].message}'])
    expect(succeeded(found).stdout).not.toBe('')
    return found.stdout
  }, 60)
}

test('a rule trusts the public instance until the configuration has another, which takes no restart', async () => {
  const started = () => cluster.initOf(node)
  const before = started()
  const rootOf = async () => JSON.parse(await on('get', 'tuftrustedroots', 'trusted_root.json', '-o', 'json')).spec.jsonData
  expect(await rootOf()).toContain('https://rekor.sigstore.dev')
  expect(await refusalOf('story/bundle')).toMatch(authority)
  await apply({ kind: 'ImageTrustedRootConfig', trustedRoot })
  await eventually(async () => expect(await rootOf()).toBe(trustedRoot))
  expect(started()).toBe(before)
}, 120_000)

test('a trusted root that could verify nothing is refused when it is applied', async () => {
  const document = { apiVersion: 'v1alpha1', kind: 'ImageTrustedRootConfig', trustedRoot: '{}' }
  const { code, stderr } = await cluster.talosctl('-n', address, 'patch', 'mc', '-p', JSON.stringify(document))
  expect([code, stderr]).toEqual([1, expect.stringContaining('not a trusted root of Sigstore')])
}, 60_000)

describe('an image is pulled', () => {
  test.each(Object.keys(accepted))('that the identity has signed: %s', async (repository) => {
    succeeded(await pull(repository))
    expect(await on('image', 'list')).toContain(named(repository))
  })

  test('by a pod, in both layouts', async () => {
    expect(await podEvent('bundle', 'story/bundle', 'Pulled')).toContain(named('story/bundle'))
    expect(await podEvent('layer', 'story/layer', 'Pulled')).toContain(named('story/layer'))
  }, 150_000)
})

describe('an image is refused', () => {
  test('that is not signed, also though the node has it already', async () => {
    expect(await on('image', 'list')).toContain(named('story/part'))
    expect(await refusalOf('story/part')).toMatch(/it is not signed$/)
  })

  test.each(Object.entries(refused).map(([repository, [, reason]]) => [repository, reason] as const))('%s', async (repository, reason) => {
    expect(await refusalOf(repository)).toMatch(reason)
    expect(await on('image', 'list')).not.toContain(named(repository))
  })

  test('to a pod, whose events have rule and reason', async () => {
    const refusal = /is refused by rule 0000: it is (signed by "visitor@company\.test"|not signed)/
    expect(await podEvent('visitor', 'story/visitor', 'Failed')).toMatch(refusal)
    expect(await podEvent('unsigned', 'story/part', 'Failed')).toMatch(refusal)
  }, 150_000)
})
