import { afterAll, afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Cluster } from '../../../../src/programs/talosctl/cluster.ts'
import { newcomerOf } from '../../../../src/programs/talosctl/etcd/replace/newcomer.ts'
import { labelOf, memberOf, planOf, refusalOf } from '../../../../src/programs/talosctl/etcd/replace/plan.ts'
import type { MemberView } from '../../../../src/programs/talosctl/etcd/replace/situation.ts'
import {
  endReplacement,
  findReplacement,
  replacementFolder,
  saveReplacement,
} from '../../../../src/programs/talosctl/etcd/replace/state.ts'
import { textIo } from '../text-io.ts'

const member = (id: number, more: Partial<MemberView> = {}): MemberView => ({
  id: id.toString(16).padStart(16, '0'),
  name: `cp-${id}`,
  address: `10.5.0.${id}`,
  learner: false,
  healthy: true,
  leads: false,
  reachable: true,
  ...more,
})
const lost = { healthy: false, reachable: false }

describe('a member is removed', () => {
  test.each([
    ['one of three', member(3, lost), [member(1), member(2)]],
    ['one of five while another is silent', member(5, lost), [member(1), member(2), member(3), member(4, lost)]],
    ['a learner', member(3, { ...lost, learner: true }), [member(1)]],
    ['one beside its replacement, which has joined', member(3, lost), [member(1), member(2), member(4)]],
  ])('%s', (_, gone, others) => expect(refusalOf({ gone, others })).toBeUndefined())
})

describe('a removal is refused', () => {
  test.each([
    ['of a member that answers', member(3), [member(1), member(2)], 'cp-3 (10.5.0.3, 0000000000000003) answers'],
    ['of a machine that answers', member(3, { healthy: false }), [member(1), member(2)], 'explain" shows why'],
    ['without a majority of those that remain', member(3, lost), [member(1), member(2, lost)], '1 of the 3 voting members are healthy'],
    ['where a learner would be needed', member(2, lost), [member(1), member(3, { learner: true })], 'needs 2: add a control plane first'],
    ['of the only member', member(1, lost), [], '0 of the 1 voting members'],
  ])('%s', (_, gone, others, words) => expect(refusalOf({ gone, others })).toContain(words))
})

test('a member is given by its id, its name or its address', () => {
  const members = [member(1), member(0xab), member(3, { name: 'cp-1' })]
  expect(memberOf(members, 'ab')?.id).toBe('00000000000000ab')
  expect(memberOf(members, '0x00AB')?.id).toBe('00000000000000ab')
  expect(memberOf(members, '10.5.0.3')?.id).toBe('0000000000000003')
  expect(memberOf(members, 'cp-9')).toBeUndefined()
  expect(() => memberOf(members, 'cp-1')).toThrow('give the id of one member')
})

test('the plan names who is gone, who stays and what follows', () => {
  const others = [member(1, { leads: true }), member(2)]
  expect(planOf({ gone: member(3, lost), others }, 'cp-3', '10.5.0.9')).toEqual([
    'gone: cp-3 (10.5.0.3, 0000000000000003): neither its etcd nor its machine answers',
    'stays: cp-1 (10.5.0.1, 0000000000000001): leads, healthy',
    'stays: cp-2 (10.5.0.2, 0000000000000002): votes, healthy',
    '1. remove the member from etcd',
    '2. delete the Kubernetes node cp-3',
    '3. wait until 10.5.0.9 is a voting member of etcd and healthy',
    'a machine that was only cut off joins again as a new member when it returns: make sure that it is off',
  ])
  expect(planOf({ gone: member(3, lost), others }, undefined, '10.5.0.9', true).slice(4, 7)).toEqual([
    '2. nothing to delete in Kubernetes: it has no node of this name or address',
    '3. apply the configuration to 10.5.0.9 while it waits in maintenance',
    '4. wait until 10.5.0.9 is a voting member of etcd and healthy',
  ])
  expect(labelOf(member(3, { name: '' }))).toBe('a member that never started (10.5.0.3, 0000000000000003)')
})

describe('a configuration for the machine that takes the place', () => {
  const folder = mkdtempSync(join(tmpdir(), 'ichor-newcomer-'))
  afterAll(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'config.yaml')
  const io = textIo()
  const refusal = (flags: object, config = 'version: v1alpha1\nmachine: {type: worker}\n') => {
    writeFileSync(file, config)
    return newcomerOf(io, new Cluster(io), [member(1, lost)], flags).then(String, (error: Error) => error.message)
  }

  test('is refused without the address of the machine, or when it is not of a control plane', async () => {
    expect(await refusal({})).toBe('undefined')
    expect(await refusal({ certFingerprint: ['x'] })).toContain('--cert-fingerprint goes with --config-file only')
    expect(await refusal({ configFile: file })).toContain('name it with --with')
    expect(await refusal({ configFile: file, with: 'cp-4' })).toContain('needs the address of the machine')
    expect(await refusal({ configFile: file, with: '10.5.0.9' })).toContain('is not the configuration of a control plane')
    const config = 'version: v1alpha1\nmachine: {type: controlplane}\n'
    expect(await refusal({ configFile: file, with: '10.5.0.9' }, config)).toContain('no member of etcd is healthy')
  })
})

describe('a replacement that has begun', () => {
  let folder = ''
  beforeEach(() => {
    folder = replacementFolder({ TALOS_HOME: mkdtempSync(join(tmpdir(), 'ichor-replace-')) })
  })
  afterEach(() => rmSync(join(folder, '..'), { recursive: true }))
  const { id, name, address } = member(3)
  const replacement = { id, name, address, others: [member(1).id, member(2).id], node: { name: 'cp-3', uid: 'u' } }

  test('is found again in the cluster that it belongs to, and only there', async () => {
    expect(await findReplacement(folder, name, replacement.others)).toBeUndefined()
    await saveReplacement(folder, replacement)
    for (const which of [name, address, '3']) expect(await findReplacement(folder, which, [member(2).id, '4'])).toEqual(replacement)
    expect(await findReplacement(folder, name, ['4'])).toBeUndefined()
    expect(await findReplacement(folder, 'cp-2', replacement.others)).toBeUndefined()
    await endReplacement(folder, replacement)
    expect(readdirSync(folder)).toEqual([])
  })

  test('is refused with a damaged file', async () => {
    await saveReplacement(folder, replacement)
    writeFileSync(join(folder, `${id}.json`), '{')
    await expect(findReplacement(folder, name, replacement.others)).rejects.toThrow('is not the file of a replacement: delete it')
  })
})
