import { describe, expect, test } from 'bun:test'
import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import { bundleType, contents, digestOf, host, image, json, putBundle, refer, verify, withKey } from './signed-registry.ts'

const key = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 })
const edwards = generateKeyPairSync('ed25519')
const other = generateKeyPairSync('ec', { namedCurve: 'P-256' })

const signed = (text: string, { privateKey }: { privateKey: KeyObject }) =>
  sign(privateKey.asymmetricKeyType === 'ed25519' ? null : 'sha256', Buffer.from(text), privateKey).toString('base64')
const encoded = (text: string) => Buffer.from(text).toString('base64')

/** A bundle of a statement about the digest. */
function statementBundle(digest: string, by: { privateKey: KeyObject }, changes: Record<string, unknown> = {}) {
  const [algorithm = '', hex] = digest.split(':')
  const type = 'application/vnd.in-toto+json'
  const statement = json({
    _type: 'https://in-toto.io/Statement/v1',
    subject: [{ name: 'image', digest: { [algorithm]: hex } }],
    predicateType: 'https://sigstore.dev/cosign/sign/v1',
  })
  const signature = signed(`DSSEv1 ${type.length} ${type} ${statement.length} ${statement}`, by)
  return {
    mediaType: bundleType,
    verificationMaterial: { publicKey: { hint: 'key' }, tlogEntries: [] },
    dsseEnvelope: { payload: encoded(statement), payloadType: type, signatures: [{ sig: signature }] },
    ...changes,
  }
}

/** The reason why the rule of the key refuses an image with this bundle; empty when it does not. */
async function refusalWith(repository: string, bundle: unknown): Promise<string> {
  refer(repository, image(repository).digest, bundle)
  return verify(`${host}/${repository}:v1`, withKey(key)).then(
    () => '',
    (error: Error) => error.message.replace(/^.* is refused by rule 0000: /, ''),
  )
}

describe('a bundle by the key of its rule', () => {
  test.each([
    ['ECDSA', key],
    ['RSA', rsa],
    ['Ed25519', edwards],
  ] as const)('is found among the referrers of the image: %s', async (name, by) => {
    const repository = `referrers/${name.toLowerCase()}`
    const { digest } = image(repository)
    refer(repository, digest, statementBundle(digest, other), statementBundle(digest, by))
    expect(await verify(`${host}/${repository}:v1`, withKey(by))).toMatchObject({
      verified: true,
      digestedImageRef: `${host}/${repository}@${digest}`,
    })
  })

  test('is found under the tag that stands for referrers, as an index or as one manifest', async () => {
    const { digest } = image('tagged')
    const tag = `/v2/tagged/manifests/${digest.replace(':', '-')}`
    contents.set(tag, json({ manifests: [{ digest: digestOf('gone') }, putBundle('tagged', statementBundle(digest, key))] }))
    expect(await verify(`${host}/tagged:v1`, withKey(key))).toMatchObject({ verified: true })
    const text = json(statementBundle(digest, key))
    contents.set(`/v2/tagged/blobs/${digestOf(text)}`, text)
    contents.set(tag, json({ layers: [{ mediaType: bundleType, digest: digestOf(text) }] }))
    expect(await verify(`${host}/tagged:v1`, withKey(key))).toMatchObject({ verified: true })
  })

  test('may be of the manifest itself', async () => {
    const { manifest, digest } = image('message')
    const messageDigest = { algorithm: 'SHA2_256', digest: Buffer.from(digest.slice(7), 'hex').toString('base64') }
    const bundle = { messageSignature: { messageDigest, signature: signed(manifest, key) }, dsseEnvelope: undefined }
    refer('message', digest, statementBundle(digest, key, bundle))
    expect(await verify(`${host}/message:v1`, withKey(key))).toMatchObject({ verified: true })
  })
})

describe('a bundle is refused', () => {
  const { manifest, digest } = image('refused')
  const good = statementBundle(digest, key)
  const message = (of: string) => ({
    messageDigest: { algorithm: 'SHA2_256', digest: Buffer.from(of.slice(7), 'hex').toString('base64') },
    signature: signed(manifest, key),
  })
  const aboutOther = statementBundle(`sha256:${'0'.repeat(64)}`, key)
  test.each<[string, unknown, string]>([
    ['of another key', statementBundle(digest, other), 'a signature of it is not of the rule’s key'],
    ['about another image', aboutOther, 'a bundle of it is about another image'],
    ['with a certificate', { ...good, verificationMaterial: { certificate: { rawBytes: 'AAAA' } } }, 'a bundle of it has a certificate'],
    ['without a signature', { ...good, dsseEnvelope: undefined }, 'a bundle of it has not exactly one signature'],
    ['with two signatures', { ...good, messageSignature: message(digest) }, 'a bundle of it has not exactly one signature'],
    [
      'of another manifest',
      { ...good, messageSignature: message(digestOf('x')), dsseEnvelope: null },
      'a bundle of it is about another image',
    ],
    ['of an older version', { ...good, mediaType: 'application/vnd.dev.sigstore.bundle+json;version=0.2' }, 'not of version 0.3'],
    ['that was cut off', json(good).slice(0, -20), 'a bundle of it is damaged'],
    ['with altered content', json(good).replace('"sig":"M', '"sig":"N'), 'a signature of it is not of the rule’s key'],
  ])('%s', async (_, bundle, reason) => {
    expect(await refusalWith('refused', bundle)).toContain(reason)
  })

  test('that is too large', async () => {
    const large = { ...good, padding: 'x'.repeat(1 << 20) }
    refer('large', image('large').digest, large)
    await expect(verify(`${host}/large:v1`, withKey(key))).rejects.toThrow('is larger than 1048576 bytes')
  })
})
