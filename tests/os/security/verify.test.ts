import { describe, expect, test } from 'bun:test'
import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import { ruleFor } from '../../../src/os/security/image-rules.ts'
import { apiStatus } from '../../../src/wire/api-status.ts'
import { contents, digestOf, host, json, requested, silentRequested, verify, verifyFor, withKey } from './signed-registry.ts'

/** Puts an image there, signed by these keys. */
function image(repository: string, ...keys: { privateKey: KeyObject }[]): string {
  return imageWith(repository, 'cosign container image signature', keys)
}

/** Puts an image there, whose signed payload is of this type. */
function imageWith(repository: string, type: string, keys: readonly { privateKey: KeyObject }[]): string {
  const manifest = json({ schemaVersion: 2, for: repository })
  const digest = digestOf(manifest)
  const put = (path: string, text: string) => contents.set(`/v2/${repository}/${path}`, text)
  put('manifests/v1', manifest)
  put(`manifests/${digest}`, manifest)
  const payload = json({ critical: { image: { 'docker-manifest-digest': digest }, type } })
  put(`blobs/${digestOf(payload)}`, payload)
  const layers = keys.map(({ privateKey }) => ({
    mediaType: 'application/vnd.dev.cosign.simplesigning.v1+json',
    digest: digestOf(payload),
    annotations: {
      'dev.cosignproject.cosign/signature': sign(
        privateKey.asymmetricKeyType === 'ed25519' ? null : 'sha256',
        Buffer.from(payload),
        privateKey,
      ).toString('base64'),
    },
  }))
  if (layers.length > 0) put(`manifests/${digest.replace(':', '-')}.sig`, json({ layers }))
  return digest
}

const ecdsa = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const other = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const edwards = generateKeyPairSync('ed25519')

describe('an image', () => {
  test('without a rule, or with one that skips it, is not verified', async () => {
    expect(await verify('nobody.invalid/x')).toEqual({ verified: false, message: 'no matched rule' })
    const skipped = await verify('nobody.invalid/x', { imagePattern: 'nobody.invalid/*', skip: true }, { imagePattern: '**', deny: true })
    expect(skipped).toMatchObject({ verified: false, message: 'verification skipped by matched rule (0000)' })
  })

  test('that a rule denies is refused', async () => {
    const denied = verify('nobody.invalid/x', { imagePattern: 'other/*', skip: true }, { imagePattern: '**', deny: true })
    await expect(denied).rejects.toMatchObject({ status: 'PermissionDenied', message: 'image "nobody.invalid/x" is denied by rule 0001' })
  })

  test.each([
    ['ECDSA', ecdsa],
    ['Ed25519', edwards],
  ] as const)('signed with the key of its rule is verified: %s', async (name, key) => {
    const digest = image(`signed/${name.toLowerCase()}`, other, key)
    const reference = `${host}/signed/${name.toLowerCase()}`
    const verified = { verified: true, message: 'signed as rule 0000 requires', digestedImageRef: `${reference}@${digest}` }
    expect(await verify(`${reference}:v1`, withKey(key))).toEqual(verified)
    expect(await verify(`${reference}@${digest}`, withKey(key))).toEqual(verified)
    expect(requested.at(-1)).toContain('Bearer repository:signed/')
  })

  test('that is unsigned, signed with another key, or has the signature of another image is refused', async () => {
    image('wrong', other)
    await expect(verify(`${host}/wrong:v1`, withKey(ecdsa))).rejects.toMatchObject({
      status: 'PermissionDenied',
      message: expect.stringContaining('a signature of it is not of the rule’s key'),
    })
    image('bare')
    await expect(verify(`${host}/bare:v1`, withKey(ecdsa))).rejects.toMatchObject({ message: expect.stringContaining('it is not signed') })
    const stolen = image('good', ecdsa)
    const digest = image('bad')
    const signature = contents.get(`/v2/good/manifests/${stolen.replace(':', '-')}.sig`)!
    contents.set(`/v2/bad/manifests/${digest.replace(':', '-')}.sig`, signature)
    const payload = JSON.parse(signature).layers[0].digest
    contents.set(`/v2/bad/blobs/${payload}`, contents.get(`/v2/good/blobs/${payload}`)!)
    await expect(verify(`${host}/bad:v1`, withKey(ecdsa))).rejects.toMatchObject({ status: 'PermissionDenied' })
  })

  test('whose signature is made for another purpose is refused', async () => {
    imageWith('purpose', 'a statement about an image', [ecdsa])
    await expect(verify(`${host}/purpose:v1`, withKey(ecdsa))).rejects.toMatchObject({ status: 'PermissionDenied' })
  })

  test('whose registry sends wrong digests is refused', async () => {
    const digest = image('lying', ecdsa)
    contents.set(`/v2/lying/manifests/${digest}`, json({ something: 'else' }))
    const payload = [...contents.keys()].find((path) => path.startsWith('/v2/lying/blobs/'))!
    contents.set(payload, `${contents.get(payload)} `)
    await expect(verify(`${host}/lying@${digest}`, withKey(ecdsa))).rejects.toMatchObject({ [apiStatus]: 'DataLoss' })
  })

  test('is verified a few at a time per caller, and no longer when the caller is gone', async () => {
    const caller = new AbortController()
    const checks = Array.from({ length: 4 }, () =>
      verifyFor({ gone: caller.signal }, `${host}/silent:v1`, withKey(ecdsa)).catch((error) => error.message),
    )
    await silentRequested.promise
    await expect(verify(`${host}/silent:v1`, withKey(ecdsa))).rejects.toMatchObject({
      status: 'ResourceExhausted',
      message: 'checks of signatures: 4 of this caller are already running',
    })
    await expect(verifyFor({ peer: '10.0.0.2' }, `${host}/nothing:v1`, withKey(ecdsa))).rejects.toMatchObject({ [apiStatus]: 'NotFound' })
    caller.abort(new Error('gone'))
    expect(await Promise.all(checks)).toEqual(['gone', 'gone', 'gone', 'gone'])
    await expect(verify(`${host}/nothing:v1`, withKey(ecdsa))).rejects.toMatchObject({ [apiStatus]: 'NotFound' })
  })

  test('that containerd pulls is verified beside fifteen others', async () => {
    const stop = new AbortController()
    const containerd = { gone: stop.signal, peer: '', roles: ['os:image:verifier'] }
    const failed = (path: string) => verifyFor(containerd, `${host}/${path}`, withKey(ecdsa)).catch((error) => error.message)
    const pulls = Array.from({ length: 15 }, () => failed('silent:v1'))
    const digest = image('pulled', ecdsa)
    expect(await verifyFor(containerd, `${host}/pulled:v1@${digest}`, withKey(ecdsa))).toMatchObject({ verified: true })
    stop.abort(new Error('gone'))
    expect(new Set(await Promise.all(pulls))).toEqual(new Set(['gone']))
  })

  test('that is missing, a rule without a key, and one without an identity are reported', async () => {
    await expect(verify(`${host}/nothing:v1`, withKey(ecdsa))).rejects.toMatchObject({ [apiStatus]: 'NotFound' })
    const broken = { imagePattern: '**', publicKeyVerifier: { certificate: 'x' } }
    await expect(verify(`${host}/good:v1`, broken)).rejects.toMatchObject({ status: 'FailedPrecondition' })
    const keyless = { imagePattern: '**', keylessVerifier: { issuer: 'https://x' } }
    await expect(verify(`${host}/good:v1`, keyless)).rejects.toMatchObject({ status: 'FailedPrecondition' })
    await expect(verify('Not/An Image', withKey(ecdsa))).rejects.toMatchObject({ status: 'InvalidArgument' })
  })
})

test.each([
  ['registry.k8s.io/*', 'registry.k8s.io/pause', true],
  ['registry.k8s.io/*', 'registry.k8s.io/coredns/coredns', true],
  ['registry.k8s.io/**', 'registry.k8s.io/coredns/coredns', true],
  ['*/pause', 'registry.k8s.io/pause', true],
  ['docker.io/*', 'index.docker.io/library/nginx', true],
  ['index.docker.io/*', 'docker.io/library/nginx', true],
  ['docker.io/*', 'mirror.docker.io/library/nginx', false],
  ['docker.io/library/?ginx', 'docker.io/library/nginx', false],
  ['docker.io/library/nginx', 'docker.io/library/nginxx', false],
  ['a.b/c', 'aXb/c', false],
])('pattern %s and image %s', (imagePattern, name, fits) => {
  expect(ruleFor([{ spec: { imagePattern, skip: true, deny: false } }], name) !== undefined).toBe(fits)
})
