import { describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseStatement } from '../../../src/os/security/signatures/bundle.ts'
import { embeddedRoot } from '../../../src/os/security/signatures/embedded-root.ts'
import { acceptedIdentity, verifyKeyless } from '../../../src/os/security/signatures/keyless.ts'
import { trustMaterialOf } from '../../../src/os/security/signatures/trusted-root.ts'
import { contents, digestOf, host, image, json, refer, verifyFor } from './signed-registry.ts'
import { SigstoreInstance } from './sigstore-instance.ts'

const instance = new SigstoreInstance()
const stranger = new SigstoreInstance()
const builder = { issuer: 'https://accounts.test', subject: 'builder@company.test' }
type Bundle = ReturnType<SigstoreInstance['bundle']>
type Identity = { issuer: string; subject?: string; subjectRegex?: string }

/** Puts a payload of the older layout there. */
function putLayer(repository: string, digest: string, { payload, annotations }: ReturnType<SigstoreInstance['layer']>): void {
  const blob = digestOf(payload)
  contents.set(`/v2/${repository}/blobs/${blob}`, payload)
  const layers = [{ mediaType: 'application/vnd.dev.cosign.simplesigning.v1+json', digest: blob, annotations }]
  contents.set(`/v2/${repository}/manifests/${digest.replace(':', '-')}.sig`, json({ layers }))
}

/** The reason why a rule refuses an image; empty when it accepts it. */
const refusalOf = (repository: string, identity: Identity = builder, root = instance.trustedRoot) =>
  verifyFor({ root }, `${host}/${repository}:v1`, { imagePattern: '**', keylessVerifier: identity }).then(
    () => '',
    (error: Error) => error.message.replace(/^.* is refused by rule 0000: /, ''),
  )

let images = 0
/** An image of its own, for which something is put beside it. */
function fresh(put: (repository: string, digest: string) => void): string {
  const repository = `keyless/${images++}`
  put(repository, image(repository).digest)
  return repository
}
const withBundle = (change: (good: Bundle, digest: string) => unknown) =>
  fresh((repository, digest) => refer(repository, digest, change(instance.bundle(digest), digest)))

describe('a keyless signature of the identity of its rule is accepted', () => {
  test('as a bundle', async () => {
    expect(await refusalOf(withBundle((good) => good))).toBe('')
  })

  test('in the older layout', async () => {
    expect(await refusalOf(fresh((repository, digest) => putLayer(repository, digest, instance.layer(digest))))).toBe('')
  })

  test('of the manifest itself', async () => {
    const { manifest, digest } = image('keyless/manifest')
    refer('keyless/manifest', digest, instance.manifestBundle(manifest))
    expect(await refusalOf('keyless/manifest')).toBe('')
    refer('keyless/manifest', digest, instance.manifestBundle(`${manifest} `))
    expect(await refusalOf('keyless/manifest')).toBe('a bundle of it is about another image')
  })

  test('with a timestamp, also of a log that has no time', async () => {
    const timestamped = { timestamped: true }
    expect(await refusalOf(fresh((name, digest) => refer(name, digest, instance.bundle(digest, timestamped))))).toBe('')
    expect(await refusalOf(fresh((name, digest) => putLayer(name, digest, instance.layer(digest, timestamped))))).toBe('')
  })

  test.each([
    'https://github.com/company/part/.github/workflows/release.yml@refs/tags/v1',
    'builder!company.test',
    'build.company.test',
    '192.0.2.7',
    '2001:db8::7',
  ])('whose subject is %s', async (subject) => {
    const repository = fresh((name, digest) => refer(name, digest, instance.bundle(digest, { subject, older: true })))
    expect(await refusalOf(repository, { ...builder, subject })).toBe('')
    expect(await refusalOf(repository, { ...builder, subject: `${subject}0` })).toContain(identity)
  })

  test('beside those of others, and ones that are damaged', async () => {
    const repository = fresh((name, digest) => {
      refer(
        name,
        digest,
        '{',
        stranger.bundle(digest),
        instance.bundle(digest, { subject: 'another@company.test' }),
        instance.bundle(digest),
      )
    })
    expect(await refusalOf(repository)).toBe('')
  })

  test('by an expression, which is searched in the subject, in the syntax of RE2', async () => {
    const subject = 'https://github.com/company/part/.github/workflows/release.yml@refs/tags/v1'
    const repository = fresh((name, digest) => refer(name, digest, instance.bundle(digest, { subject })))
    const { issuer } = builder
    expect(await refusalOf(repository, { issuer, subjectRegex: '(?i)COMPANY/[a-z]+/.*@refs/tags/v\\d$' })).toBe('')
    expect(await refusalOf(repository, { issuer, subject, subjectRegex: '^https' })).toBe('')
    for (const identity of [
      { issuer, subject, subjectRegex: '^http:' },
      { issuer, subject: 'x', subjectRegex: '^https' },
    ])
      expect(await refusalOf(repository, identity)).toContain('whom the rule does not name')
  })

  test('of the public instance, by the trusted root that comes with the system', async () => {
    const bytes = readFileSync(join(import.meta.dir, 'provenance-bundle.json'))
    const [digest = ''] = parseStatement(Buffer.from(JSON.parse(bytes.toString()).dsseEnvelope.payload, 'base64'))
    const found = { kind: 'bundle', bytes, annotations: {} } as const
    const accepted = acceptedIdentity({
      issuer: 'https://token.actions.githubusercontent.com',
      subjectRegex: '^https://github.com/sigstore/sigstore-js/\\.github/workflows/release\\.yml@',
    })
    const verified = (by: string, about: string) =>
      verifyKeyless(found, { digest: about, manifest: () => Promise.reject() }, accepted, trustMaterialOf(by))
    await verified(embeddedRoot.jsonData, digest)
    await expect(verified(embeddedRoot.jsonData, digest.replace(/.$/, 'f'))).rejects.toThrow('a bundle of it is about another image')
    await expect(verified(instance.trustedRoot, digest)).rejects.toThrow('of no trusted authority')
  })
})

const [authority, time, entry, identity, signature] = [
  'its certificate is of no trusted authority, was not valid when the image was signed, or is in no trusted log of certificates',
  'the time at which it was signed is not proven',
  'its entry in the transparency log is of no trusted log, of another signature or not proven',
  'whom the rule does not name',
  'a signature of it is not of its certificate’s key',
]

describe('a keyless signature is refused', () => {
  const late = new Date('2026-06-01T12:20:00Z')
  test.each([
    ['whose certificate had expired when it was logged', { signedAt: late }, authority],
    ['that was logged before its certificate was valid', { signedAt: new Date('2026-06-01T11:00:00Z') }, authority],
    ['of another issuer', { issuer: 'https://accounts.test.example' }, identity],
    ['of another subject', { subject: 'xbuilder@company.test' }, identity],
    ['whose certificate is for servers', { purpose: '1.3.6.1.5.5.7.3.1' }, 'its certificate is not one for signatures of code'],
    ['by another key', { signature: Buffer.alloc(70).toString('base64') }, signature],
    ['whose certificate is in no log', { withoutCertificateLog: true }, authority],
    ['whose entry is of another certificate', { loggedCertificate: Buffer.from('another') }, 'of another certificate'],
  ])('%s', async (_, options, reason) => {
    expect(await refusalOf(fresh((name, digest) => refer(name, digest, instance.bundle(digest, options))))).toContain(reason)
    expect(await refusalOf(fresh((name, digest) => putLayer(name, digest, instance.layer(digest, options))))).toContain(reason)
  })

  test('whose timestamp is missing, of another authority, of another signature or too late', async () => {
    const at = new Date('2026-06-01T12:05:00Z')
    const stamped = (by: (signature: Buffer) => string[]) =>
      withBundle((_, digest) => {
        const good = instance.bundle(digest, { timestamped: true })
        const signed = Buffer.from(good.dsseEnvelope.signatures[0]!.sig, 'base64')
        const rfc3161Timestamps = by(signed).map((signedTimestamp) => ({ signedTimestamp }))
        return { ...good, verificationMaterial: { ...good.verificationMaterial, timestampVerificationData: { rfc3161Timestamps } } }
      })
    expect(await refusalOf(stamped((signed) => [instance.timestamp(signed, at)]))).toBe('')
    expect(await refusalOf(stamped(() => []))).toBe(time)
    expect(await refusalOf(stamped(() => [instance.timestamp(Buffer.from('another'), at)]))).toBe(time)
    expect(await refusalOf(stamped((signed) => [stranger.timestamp(signed, at)]))).toBe(time)
    const options = { timestamped: true, signedAt: late }
    expect(await refusalOf(fresh((name, digest) => refer(name, digest, instance.bundle(digest, options))))).toBe(authority)
  })

  test('of another instance', async () => {
    expect(await refusalOf(fresh((name, digest) => refer(name, digest, stranger.bundle(digest))))).toBe(authority)
    expect(await refusalOf(fresh((name, digest) => putLayer(name, digest, stranger.layer(digest))))).toBe(authority)
  })

  test('of another image', async () => {
    const other = `sha256:${'0'.repeat(64)}`
    expect(await refusalOf(withBundle(() => instance.bundle(other)))).toBe('a bundle of it is about another image')
    const layer = fresh((name, digest) => putLayer(name, digest, instance.layer(other)))
    expect(await refusalOf(layer)).toBe('a signature of it is about another image')
  })

  const withEntry = ({ verificationMaterial, ...rest }: Bundle, changes: object) => ({
    ...rest,
    verificationMaterial: {
      ...verificationMaterial,
      tlogEntries: verificationMaterial.tlogEntries.map((each) => ({ ...each, ...changes })),
    },
  })
  const proofOf = ({ verificationMaterial: { tlogEntries } }: Bundle) => tlogEntries[0]!.inclusionProof
  test.each<[string, (good: Bundle, digest: string) => unknown, string]>([
    [
      'without an entry in the log',
      (good) => ({ ...good, verificationMaterial: { ...good.verificationMaterial, tlogEntries: [] } }),
      'no entry',
    ],
    ['without a promise', (good) => withEntry(good, { inclusionPromise: undefined }), time],
    ['without a proof', (good) => withEntry(good, { inclusionProof: undefined }), 'damaged, not of version 0.3'],
    ['with another time', (good) => withEntry(good, { integratedTime: '1780315400' }), entry],
    [
      'with an altered proof',
      (good) => withEntry(good, { inclusionProof: { ...proofOf(good), hashes: [Buffer.alloc(32).toString('base64')] } }),
      entry,
    ],
    ['with a shortened proof', (good) => withEntry(good, { inclusionProof: { ...proofOf(good), hashes: [] } }), entry],
    [
      'with an altered checkpoint',
      (good) =>
        withEntry(good, {
          inclusionProof: { ...proofOf(good), checkpoint: { envelope: proofOf(good).checkpoint.envelope.replace('\n2\n', '\n3\n') } },
        }),
      entry,
    ],
    [
      'with the entry of another signature',
      (good, digest) => withEntry(good, instance.bundle(digest).verificationMaterial.tlogEntries[0]!),
      'of another certificate',
    ],
    [
      'with an entry of nothing',
      (good) =>
        withEntry(good, { canonicalizedBody: Buffer.from(json({ apiVersion: '0.0.1', kind: 'dsse', spec: {} })).toString('base64') }),
      'of another certificate',
    ],
    ['with another signature', (good, digest) => ({ ...good, dsseEnvelope: instance.bundle(digest).dsseEnvelope }), entry],
    [
      'with a damaged certificate',
      (good) => ({ ...good, verificationMaterial: { ...good.verificationMaterial, certificate: { rawBytes: 'MAA=' } } }),
      'of another certificate',
    ],
    ['with a key', (good) => ({ ...good, verificationMaterial: { publicKey: { hint: 'x' } } }), 'a bundle of it has no certificate'],
    ['that was cut off', (good) => json(good).slice(0, 3000), 'damaged'],
    [
      'with too many entries',
      (good) => ({
        ...good,
        verificationMaterial: { ...good.verificationMaterial, tlogEntries: Array(9).fill(good.verificationMaterial.tlogEntries[0]) },
      }),
      'damaged',
    ],
    [
      'with one entry twice',
      (good) => ({
        ...good,
        verificationMaterial: { ...good.verificationMaterial, tlogEntries: Array(2).fill(good.verificationMaterial.tlogEntries[0]) },
      }),
      time,
    ],
  ])('as a bundle %s', async (_, change, reason) => {
    expect(await refusalOf(withBundle(change))).toContain(reason)
  })

  test.each<[string, Record<string, string | undefined>, string]>([
    ['a certificate', { 'dev.sigstore.cosign/certificate': undefined }, 'has no certificate'],
    ['an entry in the log', { 'dev.sigstore.cosign/bundle': undefined }, 'no entry in a transparency log'],
    ['an entry that is whole', { 'dev.sigstore.cosign/bundle': '{"Payload":' }, 'its entry in the transparency log is damaged'],
    ['a certificate that is whole', { 'dev.sigstore.cosign/certificate': '-----BEGIN CERTIFICATE-----' }, 'its certificate is damaged'],
    ['its own signature', { 'dev.cosignproject.cosign/signature': 'AAAA' }, entry],
    ['a timestamp that is whole', { 'dev.sigstore.cosign/rfc3161timestamp': '{"SignedRFC3161Timestamp":"MAA="}' }, 'damaged'],
  ])('in the older layout without %s', async (_, changes, reason) => {
    const repository = fresh((name, digest) => {
      const { payload, annotations } = instance.layer(digest)
      putLayer(name, digest, { payload, annotations: JSON.parse(json({ ...annotations, ...changes })) })
    })
    expect(await refusalOf(repository)).toContain(reason)
  })

  test('whose payload was altered', async () => {
    const repository = fresh((name, digest) => {
      const { payload, annotations } = instance.layer(digest)
      putLayer(name, digest, { payload: payload.replace('null', '{}'), annotations })
    })
    expect(await refusalOf(repository)).toBe(entry)
  })

  test('by a rule without a subject, with an invalid expression, or before there is a trusted root', async () => {
    const repository = withBundle((good) => good)
    const { issuer } = builder
    expect(await refusalOf(repository, { issuer })).toBe('rule 0000: the rule names no issuer, or no subject')
    expect(await refusalOf(repository, { issuer, subjectRegex: '(?=x)' })).toContain('rule 0000: subjectRegex: error parsing regexp')
    expect(await refusalOf(repository, builder, '{')).toBe('rule 0000: the trusted root is damaged')
    const early = verifyFor({}, `${host}/${repository}:v1`, { imagePattern: '**', keylessVerifier: builder })
    await expect(early).rejects.toMatchObject({ status: 'Unavailable' })
  })
})
