import { expect, test } from 'bun:test'
import { createHash } from 'node:crypto'
import { silent } from '../../../src/cosi/log.ts'
import { Runtime } from '../../../src/cosi/runtime.ts'
import { Store } from '../../../src/cosi/store.ts'
import { ConfigContainer } from '../../../src/os/config/container.ts'
import { MachineConfig } from '../../../src/os/config/resources/machine-config.ts'
import { configImageVerification } from '../../../src/os/security/controllers/image-verification.ts'
import { ImageVerificationRule } from '../../../src/os/security/resources/image-verification-rule.ts'
import { TUFTrustedRoot } from '../../../src/os/security/resources/tuf-trusted-root.ts'

const config = (rules: string) => `machine: {}\n---\napiVersion: v1alpha1\nkind: ImageVerificationConfig\nrules: [${rules}]\n`

test('the trusted root exists while a rule needs it', async () => {
  const store = new Store()
  const runtime = new Runtime(store, { log: silent })
  runtime.register(configImageVerification)
  runtime.start()
  const roots = async (rules: string) => {
    store.put(MachineConfig, 'v1alpha1', config(rules))
    await runtime.settled()
    return store.list(TUFTrustedRoot).map(({ metadata, spec }) => ({ id: metadata.id, ...spec }))
  }
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
