import { expect, test } from 'bun:test'
import * as fc from 'fast-check'
import { SealError, seal, unseal } from '../../../src/os/cluster/discovery/sealed.ts'

const key = Buffer.alloc(32, 1)

test('what the cluster seals opens with its key alone', () => {
  const sealed = seal(key, Buffer.from('affiliate'))
  expect(sealed.includes('affiliate')).toBe(false)
  expect(unseal(key, sealed).toString()).toBe('affiliate')
  expect(() => unseal(Buffer.alloc(32, 2), sealed)).toThrow(SealError)
})

test('nothing the service sends does more than fail to open', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 100 }), (bytes) => {
      expect(() => unseal(key, bytes)).toThrow(SealError)
    }),
  )
})
