import { expect, test } from 'bun:test'
import { ConfigContainer } from '../../../../src/os/config/container.ts'
import { parseConfig } from '../../../../src/os/config/parse.ts'
import { config, whole } from '../../config/machine.ts'

const problems = (encryption: string, kind = 'RawVolumeConfig') =>
  ConfigContainer.parse(
    `apiVersion: v1alpha1\nkind: ${kind}\nname: v\nprovisioning: {diskSelector: {match: "true"}, minSize: 1GB}\nencryption: {provider: luks2, ${encryption}}\n`,
  )
    .validate('metal')
    .errors.map(({ path, message }) => `${path}: ${message}`)

test.each([
  ['keys: [{slot: 32, nodeID: {}}]', 'encryption.keys[0].slot: slots must be from 0 to 31: 32'],
  ['keys: [{slot: 0, static: {}}]', 'encryption.keys[0].static.passphrase: a passphrase is required'],
  ['keySize: 128, keys: [{slot: 0, nodeID: {}}]', 'encryption.keySize: aes-xts-plain64 has keys of 512 or 256 bits'],
  ['blockSize: 8192, keys: [{slot: 0, nodeID: {}}]', 'encryption.blockSize: blocks have 512, 1024, 2048, 4096 bytes'],
  ['options: [fast], keys: [{slot: 0, nodeID: {}}]', 'encryption.options[0]: there is no option "fast"'],
  ['keys: [{slot: 0, tpm: {options: {pcrs: [24]}}}]', 'encryption.keys[0].tpm.options.pcrs: PCRs must be from 0 to 23: 24'],
  ['keys: [{slot: 0, kms: {}}]', 'encryption.keys[0].kms.endpoint: an endpoint is required'],
  ['keys: [{slot: 0, kms: {endpoint: "https://a b"}}]', 'encryption.keys[0].kms.endpoint: an endpoint is required'],
])('what could not be created is rejected: %s', (encryption, problem) => {
  expect(problems(encryption).join()).toContain(problem)
})

test('control planes seal for volumes of workers, except for STATE', () => {
  const volume = (type: 'worker' | 'controlplane', name: string) =>
    whole[type]
      .patch(
        `---\napiVersion: v1alpha1\nkind: VolumeConfig\nname: ${name}\nencryption: {provider: luks2, keys: [{slot: 0, kms: {endpoint: "sibling://"}}]}\n`,
      )
      .validate('metal')
      .errors.map(({ message }) => message)
  expect(volume('worker', 'EPHEMERAL')).toEqual([])
  expect(volume('worker', 'STATE').join()).toContain('needs the configuration, which is on STATE')
  expect(volume('controlplane', 'EPHEMERAL').join()).toContain('protects nothing on a control plane')
})

test('everything that acts is accepted, in the older section too', () => {
  expect(
    problems('cipher: "xchacha20,aes-adiantum-plain64", keySize: 256, blockSize: 4096, keys: [{slot: 31, nodeID: {}, lockToState: true}]'),
  ).toEqual([])
  expect(problems('keys: [{slot: 0, kms: {endpoint: "https://kms.example"}}, {slot: 1, kms: {endpoint: "sibling://"}}]')).toEqual([])
  expect(problems('keys: [{slot: 0, tpm: {}}, {slot: 1, tpm: {options: {pcrs: []}, checkSecurebootStatusOnEnroll: true}}]')).toEqual([])
  const older = (fields: string) =>
    parseConfig(config('worker', `machine: {systemDiskEncryption: {state: {${fields}}}}`))
      .validate('metal')
      .errors.map(({ path }) => path)
  expect(older('keys: [{slot: 0, nodeID: {}}]')).toEqual([])
  expect(older('keys: [{slot: 0, kms: {endpoint: "grpc://kms.example:4050"}}]')).toEqual([])
  expect(older('provider: other, keys: [{slot: 0, nodeID: {}}]')).toEqual(['machine.systemDiskEncryption.state.provider'])
  expect(older('cipher: other, keys: [{slot: 0, nodeID: {}}]')).toEqual(['machine.systemDiskEncryption.state.cipher'])
})
