import { describe, expect, test } from 'bun:test'
import { createHash } from 'node:crypto'
import { silent } from '../../../src/cosi/log.ts'
import { Runtime } from '../../../src/cosi/runtime.ts'
import { Store } from '../../../src/cosi/store.ts'
import { ConfigContainer } from '../../../src/os/config/container.ts'
import { MachineConfig } from '../../../src/os/config/resources/machine-config.ts'
import { configImageVerification } from '../../../src/os/security/controllers/image-verification.ts'
import { ImageVerificationRule } from '../../../src/os/security/resources/image-verification-rule.ts'
import { TUFTrustedRoot } from '../../../src/os/security/resources/tuf-trusted-root.ts'
import { embeddedRoot } from '../../../src/os/security/signatures/embedded-root.ts'
import { SigstoreInstance } from './sigstore-instance.ts'

const config = (rules: string) => `machine: {}\n---\napiVersion: v1alpha1\nkind: ImageVerificationConfig\nrules: [${rules}]\n`

/** The controller over a store, and the trusted roots that it makes of a configuration. */
function controller() {
  const store = new Store()
  const runtime = new Runtime(store, { log: silent })
  runtime.register(configImageVerification)
  runtime.start()
  const roots = async (rules: string, more = '') => {
    store.put(MachineConfig, 'v1alpha1', config(rules) + more)
    await runtime.settled()
    return store.list(TUFTrustedRoot).map(({ metadata, spec }) => ({ id: metadata.id, ...spec }))
  }
  return { store, roots }
}

/** A document with a trusted root. */
const withRoot = (trustedRoot: string) =>
  `---\n${JSON.stringify({ apiVersion: 'v1alpha1', kind: 'ImageTrustedRootConfig', trustedRoot })}\n`

test('the trusted root exists while a rule needs it', async () => {
  const { store, roots } = controller()
  expect(await roots('{image: a, publicKey: {certificate: k}}')).toEqual([])
  const [root, ...others] = await roots('{image: a, skip: true}, {image: b, keyless: {issuer: i, subject: s, subjectRegex: r}}')
  expect(others).toEqual([])
  expect(root).toMatchObject({ id: 'trusted_root.json', lastRefreshTime: '2026-11-05T00:19:12Z' })
  expect(
    createHash('sha256')
      .update(root?.jsonData ?? '')
      .digest('hex'),
  ).toBe('6494e21ea73fa7ee769f85f57d5a3e6a08725eae1e38c755fc3517c9e6bc0b66')
  expect(store.get(ImageVerificationRule, '0001')?.spec).toMatchObject({
    imagePattern: 'b',
    keylessVerifier: { issuer: 'i', subject: 's', subjectRegex: 'r' },
  })
  expect(await roots('{image: a, skip: true}')).toEqual([])
})

test('a trusted root of the configuration takes the place of the one that comes with the release', async () => {
  const { roots } = controller()
  const { trustedRoot } = new SigstoreInstance()
  const keyless = '{image: b, keyless: {issuer: i, subject: s}}'
  expect(await roots(keyless, withRoot(trustedRoot))).toEqual([{ id: 'trusted_root.json', jsonData: trustedRoot }])
  expect(await roots('{image: a, skip: true}', withRoot(trustedRoot))).toEqual([])
  expect(await roots(keyless)).toEqual([{ id: 'trusted_root.json', ...embeddedRoot }])
})

describe('a trusted root of the configuration', () => {
  const good = JSON.parse(new SigstoreInstance().trustedRoot)
  const mistakesOf = (trustedRoot: string) => {
    const { errors } = ConfigContainer.parse(config('') + withRoot(trustedRoot)).validate('metal')
    return errors.filter(({ path }) => path?.includes('trustedRoot')).map(({ message }) => message)
  }

  test('is accepted as Sigstore makes it', () => {
    expect(mistakesOf(JSON.stringify(good))).toEqual([])
    expect(mistakesOf(embeddedRoot.jsonData)).toEqual([])
  })

  test.each<[string, string, string]>([
    ['empty', '', 'is required'],
    ['too long', ' '.repeat(300_000), 'at most 256 KiB'],
    ['no JSON', '{', 'not JSON'],
    ['a list', '[]', 'not a trusted root of Sigstore'],
    ['a bundle', JSON.stringify({ ...good, mediaType: 'application/vnd.dev.sigstore.bundle.v0.3+json' }), 'mediaType'],
    ['without a log', JSON.stringify({ ...good, tlogs: [] }), 'tlogs: is empty'],
    ['without a log of certificates', JSON.stringify({ ...good, ctlogs: undefined }), 'ctlogs'],
    ['without an authority', JSON.stringify({ ...good, certificateAuthorities: [] }), 'certificateAuthorities: is empty'],
    [
      'with a damaged certificate',
      JSON.stringify({ ...good, certificateAuthorities: [{ certChain: { certificates: [{ rawBytes: 'MAA=' }] } }] }),
      'certificateAuthorities.0.certChain.certificates.0.rawBytes: not a certificate',
    ],
    [
      'with a damaged key',
      JSON.stringify({ ...good, tlogs: [{ ...good.tlogs[0], publicKey: { ...good.tlogs[0].publicKey, rawBytes: 'MAA=' } }] }),
      'tlogs.0.publicKey: not a public key',
    ],
  ])('that is %s is refused', (_, root, message) => {
    expect(mistakesOf(root)).toEqual([expect.stringContaining(message)])
  })
})

test.each([
  ['{issuer: i, subject: s}', []],
  ['{issuer: i, subjectRegex: "^a.*(b|c)$"}', []],
  ['{issuer: i, subjectRegex: "("}', ['rules[0].keyless.subjectRegex']],
  ['{issuer: i, subjectRegex: "(?=a)"}', ['rules[0].keyless.subjectRegex']],
  ['{issuer: i}', ['rules[0].keyless']],
  ['{subject: s}', ['rules[0].keyless.issuer']],
])('a keyless rule %s has mistakes at %p', (keyless, paths) => {
  const { errors } = ConfigContainer.parse(config(`{image: a, keyless: ${keyless}}`)).validate('metal')
  expect(errors.map(({ path }) => path).filter((path) => path?.includes('rules'))).toEqual(paths)
})
