import { describe, expect, test } from 'bun:test'
import {
  advance,
  authorityOf,
  ForeignAuthority,
  fingerprintOf,
  othersAccepted,
  stageOf,
} from '../../../../src/programs/talosctl/rotation/authority.ts'
import { controlPlane, newAuthority, secrets, worker } from './machines.ts'

const next = newAuthority()

describe.each([
  ['machine', secrets.certs.os],
  ['cluster', secrets.certs.k8s],
] as const)('%s.ca', (section, old) => {
  const replacement = { old, next }

  test.each([
    ['a control plane', controlPlane, next.key],
    ['a worker', worker, ''],
  ])('%s goes from stage to stage, and ends with the new authority alone', (_, before, key) => {
    const part = (config: typeof before) => ({
      ca: config.v1alpha1?.[section]?.ca,
      accepted: config.v1alpha1?.[section]?.acceptedCAs ?? [],
    })
    expect(stageOf(before, section, replacement)).toBe(0)
    const one = advance(before, section, replacement, 1)
    expect([stageOf(one, section, replacement), part(one)]).toEqual([1, { ca: part(before).ca, accepted: [{ crt: next.crt }] }])
    const two = advance(one, section, replacement, 2)
    expect([stageOf(two, section, replacement), part(two)]).toEqual([2, { ca: { crt: next.crt, key }, accepted: [{ crt: old.crt }] }])
    const three = advance(two, section, replacement, 3)
    expect([stageOf(three, section, replacement), part(three)]).toEqual([3, { ca: { crt: next.crt, key }, accepted: [] }])
    expect(three.validate('container').errors).toEqual([])
    expect(three.text).not.toContain('acceptedCAs')
  })

  test('comments and other documents stay as they were', () => {
    const one = advance(advance(advance(controlPlane, section, replacement, 1), section, replacement, 2), section, replacement, 3)
    expect(one.text.replaceAll(next.crt, old.crt).replaceAll(next.key, old.key)).toBe(controlPlane.text)
  })
})

test('an authority that somebody else accepted stays, and is reported', () => {
  const replacement = { old: secrets.certs.os, next }
  const third = newAuthority()
  const accepting = controlPlane.patch(JSON.stringify({ machine: { acceptedCAs: [{ crt: third.crt }] } }))
  const three = ([1, 2, 3] as const).reduce((config, stage) => advance(config, 'machine', replacement, stage), accepting)
  expect(three.v1alpha1?.machine?.acceptedCAs).toEqual([{ crt: third.crt }])
  expect(othersAccepted(three, 'machine', replacement)).toEqual([fingerprintOf(third.crt)])
})

test('a machine of a third authority is refused, with the fingerprints', () => {
  const replacement = { old: newAuthority(), next }
  expect(() => stageOf(controlPlane, 'machine', replacement)).toThrow(ForeignAuthority)
  expect(() => stageOf(controlPlane, 'machine', replacement)).toThrow(fingerprintOf(secrets.certs.os.crt))
})

test('only a control plane has the key of its authority', () => {
  expect(authorityOf(controlPlane, 'machine')).toEqual(secrets.certs.os)
  expect(authorityOf(worker, 'machine')).toBeUndefined()
})
