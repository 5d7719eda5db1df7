import { expect, test } from 'bun:test'
import { AddressLimits, addressLimits } from '../../../src/programs/discovery/address-limits.ts'

const one = Uint8Array.of(10, 0, 0, 1)
const other = Uint8Array.of(10, 0, 0, 2)

test('an address with too many requests is refused, others are not, and it may request again later', () => {
  let now = 0
  const limits = new AddressLimits(() => now)
  for (let n = 0; n < addressLimits.burst; n++) limits.take(one, 'c')
  expect(() => limits.take(one, 'c')).toThrow('too many calls from your address')
  limits.take(other, 'c')
  now = 1000
  for (let n = 0; n < addressLimits.rate; n++) limits.take(one, 'c')
  expect(() => limits.take(one, 'c')).toThrow('too many calls')
})

test('an address has as many clusters and watches as it may, of IPv6 a whole network', () => {
  let now = 0
  const limits = new AddressLimits(() => now)
  for (let n = 0; n < addressLimits.clusters; n++) limits.take(one, `c${n}`)
  limits.take(one, 'c0')
  expect(() => limits.take(one, 'another')).toThrow('too many clusters from your address')
  const six = (last: number) => Uint8Array.of(0xfd, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, last)
  const ends = Array.from({ length: addressLimits.watches }, (_, n) => limits.watch(six(n & 255)))
  expect(() => limits.watch(six(9))).toThrow('too many watches from your address')
  ends[0]!()
  limits.watch(six(9))
  now = 3_600_000
  limits.sweep()
  limits.take(one, 'another') // its clusters were forgotten with it
  expect(() => limits.watch(six(9))).toThrow('too many watches') // these go on
})

test('when many addresses are remembered, the one that was silent for longest gives way to a newcomer', () => {
  const limits = new AddressLimits(() => 0)
  const address = (n: number) => Uint8Array.of(10, n >> 16, n >> 8, n)
  for (let n = 0; n < addressLimits.clusters; n++) limits.take(address(0), `c${n}`)
  const end = limits.watch(address(1))
  for (let n = 1; n < addressLimits.addresses; n++) limits.take(address(n), 'c')
  limits.take(address(addressLimits.addresses), 'c')
  limits.take(address(0), 'another') // forgotten, and with it the clusters that it named
  end()
})
