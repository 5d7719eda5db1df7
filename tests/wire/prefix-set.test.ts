import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { DecodeError } from '../../src/wire/decode-error.ts'
import { containsAddress, nthAddress, parsePrefix } from '../../src/wire/prefix.ts'
import { PrefixSet } from '../../src/wire/prefix-set.ts'

const network = fc
  .tuple(fc.integer({ min: 0, max: 0xffff }), fc.integer({ min: 16, max: 32 }))
  .map(([low, bits]) => `10.0.${low >> 8}.${low & 255}/${bits}`)
const holds = (networks: readonly string[], address: string) => networks.some((one) => containsAddress(parsePrefix(one), address))

describe('a set of networks', () => {
  test('merges adjacent ranges and removes subtracted ones', () => {
    expect(PrefixSet.of(['10.0.1.0/24', '10.0.0.0/24', 'fd00::1', '10.0.0.7']).networks()).toEqual(['10.0.0.0/23', 'fd00::1/128'])
    const rest = PrefixSet.of(['10.0.0.0/30', 'fd00::/127']).without(PrefixSet.of(['10.0.0.1', 'fd00::/64']))
    expect(rest.networks()).toEqual(['10.0.0.0/32', '10.0.0.2/31'])
    expect(PrefixSet.of(['0.0.0.0/0', '::/0']).networks()).toEqual(['0.0.0.0/0', '::/0'])
    expect(() => PrefixSet.of(['10.0.0.0/33'])).toThrow(DecodeError)
  })

  test('contains an address exactly when its networks do', () => {
    fc.assert(
      fc.property(
        fc.array(network, { maxLength: 6 }),
        fc.array(network, { maxLength: 6 }),
        fc.integer({ min: 0, max: 0xffff }),
        (a, b, n) => {
          const address = nthAddress(parsePrefix('10.0.0.0/16'), n)
          const [one, other] = [PrefixSet.of(a), PrefixSet.of(b)]
          expect(holds(one.without(other).networks(), address)).toBe(holds(a, address) && !holds(b, address))
          expect(holds(one.with(other).networks(), address)).toBe(holds(a, address) || holds(b, address))
          if (holds(a, address) && holds(b, address)) expect(one.overlaps(other)).toBe(true)
          expect(one.without(other).overlaps(other)).toBe(false)
        },
      ),
    )
  })
})
