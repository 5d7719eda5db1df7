import { expect, test } from 'bun:test'
import { Store } from '../../../src/cosi/store.ts'
import { VolumeStatus } from '../../../src/os/block/resources/volume-status.ts'
import { encryptionRefusals } from '../../../src/os/config/apply/encryption-refusals.ts'
import { ConfigContainer } from '../../../src/os/config/container.ts'

const machine = (section = '') => `version: v1alpha1\nmachine:\n  type: worker\n${section}`
const config = (keys?: string, kind = 'VolumeConfig', name = 'STATE') =>
  ConfigContainer.parse(
    keys === undefined
      ? `${machine()}---\napiVersion: v1alpha1\nkind: ${kind}\nname: ${name}\n`
      : `${machine()}---\napiVersion: v1alpha1\nkind: ${kind}\nname: ${name}\nencryption: { provider: luks2, keys: ${keys} }\n`,
  )

const store = (id = 'STATE', encryptionFailedSyncs?: string[]) => {
  const made = new Store()
  made.put(VolumeStatus, id, {
    phase: 'ready',
    type: 'partition',
    location: '/dev/vda5',
    ...(encryptionFailedSyncs && { encryptionFailedSyncs }),
  })
  return made
}
const [a, b] = ['{ slot: 0, static: { passphrase: a } }', '{ slot: 1, nodeID: {} }']

test('a volume stays encrypted or plain as it is on the disk', () => {
  expect(encryptionRefusals(config(), config(`[${a}]`), store())).toEqual([
    { message: 'volume "STATE": it is not encrypted on the disk, which changes only when it is wiped and created again', forcible: false },
  ])
  const [refusal] = encryptionRefusals(config(`[${a}]`, 'UserVolumeConfig', 'x'), config(undefined, 'UserVolumeConfig', 'x'), store('u-x'))
  expect(refusal).toMatchObject({ forcible: true, message: expect.stringContaining('volume "u-x": it is encrypted on the disk') })
  expect(encryptionRefusals(config(), config(`[${a}]`), new Store())).toEqual([])
  expect(encryptionRefusals(config(`[${a}]`), config(`[${a}]`), store())).toEqual([])
})

test('one key of a volume stays, and none goes while another is not in place', () => {
  expect(encryptionRefusals(config(`[${a}, ${b}]`), config(`[${b}]`), store())).toEqual([])
  expect(encryptionRefusals(config(`[${a}]`), config(`[${b}]`), store())[0]?.message).toContain('none of its keys stays')
  expect(encryptionRefusals(config(`[${a}, ${b}]`), config(`[${b}]`), store('STATE', ['slot 1: no UUID']))[0]?.message).toContain(
    'slot 1: no UUID',
  )
  expect(encryptionRefusals(config(`[${a}]`), config(`[${a}, ${b}]`), store('STATE', ['slot 1: no UUID']))).toEqual([])
})

test('keys of a KMS and of the TPM are different ones, and so are those of two servers', () => {
  const [tpm, one, other] = [
    '{ slot: 0, tpm: {} }',
    '{ slot: 0, kms: { endpoint: "https://a" } }',
    '{ slot: 0, kms: { endpoint: "https://b" } }',
  ]
  const reason = (was: string, is: string) => encryptionRefusals(config(`[${was}]`), config(`[${is}]`), store())[0]?.message ?? ''
  expect([reason(tpm, one), reason(one, tpm), reason(one, other)].map((each) => each.includes('none of its keys stays'))).toEqual([
    true,
    true,
    true,
  ])
  expect([reason(tpm, '{ slot: 0, tpm: { options: { pcrs: [] } } }'), reason(one, one.replace('slot: 0', 'slot: 1'))]).toEqual(['', ''])
})

test('the older section and the document are the same', () => {
  const older = ConfigContainer.parse(machine(`  systemDiskEncryption:\n    state: { provider: luks2, keys: [${a}] }\n`))
  expect(encryptionRefusals(older, config(`[${a}]`), store())).toEqual([])
  expect(encryptionRefusals(older, config(`[${b}]`), store())[0]?.message).toContain('none of its keys stays')
})
