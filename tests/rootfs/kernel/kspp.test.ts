import { describe, expect, test } from 'bun:test'
import { complaints, judge, type Requirement, RequirementError, requirements, requirementsIn } from '../../../rootfs/kernel/kspp.ts'
import { missed, OptionsError, optionsIn, requestedOptions } from '../../../rootfs/kernel/options.ts'

describe('the options of the hardened kernel', () => {
  const requested = requestedOptions()

  test('meet every requirement or have a reason', () => {
    expect(complaints(judge(requested))).toEqual([])
  })

  test('name what meets a requirement, so that no default of another release undoes it', () => {
    const silent = judge(requested).filter(({ requirement, met }) => met && !requirement.names.some((name) => requested.has(name)))
    expect(silent.map(({ requirement }) => requirement.names[0])).toEqual([])
  })

  test.each([
    ['VMAP_STACK', 'n', 'CONFIG_VMAP_STACK: y is wanted, it is n, and kspp.tsv has no reason'],
    ['DEVMEM', 'y', 'CONFIG_DEVMEM: n is wanted, it is y, and kspp.tsv has no reason'],
    ['LSM', '"selinux,lockdown,landlock"', 'CONFIG_LSM: has yama is wanted, it is "selinux,lockdown,landlock", and kspp.tsv has no reason'],
    ['INIT_ON_FREE_DEFAULT_ON', 'y', 'CONFIG_INIT_ON_FREE_DEFAULT_ON: is as wanted, yet kspp.tsv has a reason why not: take it out'],
  ])('with CONFIG_%s=%s are refused', (name, value, complaint) => {
    expect(complaints(judge(new Map([...requested, [name, value]])))).toEqual([complaint])
  })

  test.each(['BLK_DEV_NVME', 'SATA_AHCI', 'VIRTIO_BLK', 'SCSI_VIRTIO', 'VIRTIO_NET', 'E1000E', 'IGB', 'R8169', 'SQUASHFS', 'DM_VERITY'])(
    'have %s built in',
    (name) => {
      expect(requested.get(name)).toBe('y')
    },
  )
})

test('a requirement is met under the name of another release', () => {
  const table = requirementsIn('NEW|OLD\ty\n')
  expect(judge(new Map([['OLD', 'y']]), table)).toMatchObject([{ found: 'y', met: true }])
  expect(judge(new Map([['OLD', 'm']]), table)).toMatchObject([{ found: 'm', met: false }])
})

test('what did not take effect is named', () => {
  const requested = optionsIn('CONFIG_A=y\nCONFIG_B=m\n# CONFIG_C is not set\n', 'requested')
  expect(missed(requested, optionsIn('# a comment\n\nCONFIG_B=y\nCONFIG_C=y\n', 'got'))).toEqual([
    'CONFIG_A: y was requested, n came out',
    'CONFIG_B: m was requested, y came out',
    'CONFIG_C: n was requested, y came out',
  ])
})

test.each([
  ['CONFIG_A', 'f:1: must be "CONFIG_NAME=value" or "# CONFIG_NAME is not set": CONFIG_A'],
  ['CONFIG_A=y\n# CONFIG_A is not set', 'f:2: CONFIG_A is there twice'],
])('options that are none are refused: %j', (text, message) => {
  expect(() => optionsIn(text, 'f')).toThrow(new OptionsError(message))
})

test.each([
  ['A', 'kspp.tsv line 1: must be names, what is wanted and a reason or none: A'],
  ['A\ty\t', 'kspp.tsv line 1: must be names, what is wanted and a reason or none: A\ty\t'],
  ['A\ty\nA\ty', 'kspp.tsv line 2: A is there twice'],
])('a table that is none is refused: %j', (text, message) => {
  expect(() => requirementsIn(text)).toThrow(new RequirementError(message))
})

test('the table has a reason for each requirement that is not met, and no other', () => {
  const reasoned = requirements.filter((requirement: Requirement) => requirement.reason)
  expect(reasoned.length).toBe(judge(requestedOptions()).filter(({ met }) => !met).length)
})
