import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { DecodeError } from '../../../src/wire/decode-error.ts'
import { attribute, nested, text, u8, u32 } from '../../../src/wire/netlink/attributes.ts'
import {
  readChannels,
  readFeatureNames,
  readFeatures,
  readLinkInfo,
  readLinkModes,
  readLinkState,
  readRings,
  readWake,
  writeChannels,
  writeEthtoolQuery,
  writeFeatures,
  writeRings,
  writeWake,
} from '../../../src/wire/netlink/ethtool.ts'
import { writeGeneric } from '../../../src/wire/netlink/generic.ts'
import { runs } from '../../support/runs.ts'

const answer = (...attributes: Uint8Array[]) => writeGeneric(0, 1, attributes)
const bit = (index: number, name: string, on: boolean) =>
  nested(1, [u32(1, index), text(2, name), ...(on ? [attribute(3, new Uint8Array())] : [])])
const set = (type: number, all: boolean, ...bits: Uint8Array[]) =>
  nested(type, [...(all ? [attribute(1, new Uint8Array())] : []), u32(2, 64), nested(3, bits)])

describe('what an interface reports', () => {
  test('rings and channels: only those it has', () => {
    expect(readRings(answer(u32(2, 4096), u32(6, 256), u8(11, 2), u8(13, 1)))).toEqual({
      rxMax: 4096,
      rx: 256,
      tcpDataSplit: true,
      txPush: true,
    })
    expect(readChannels(answer(u32(5, 8), u32(9, 4)))).toEqual({ combinedMax: 8, combined: 4 })
  })

  test('modes, link, port', () => {
    const modes = readLinkModes(answer(set(3, false, bit(5, '1000baseT/Full', true), bit(6, 'Autoneg', false)), u32(5, 1000), u8(6, 1)))
    expect(modes).toMatchObject({ speed: 1000, duplex: 1, peer: [] })
    expect(modes.ours.map(({ name, on }) => `${name} ${on}`)).toEqual(['1000baseT/Full true', 'Autoneg false'])
    expect(readLinkModes(answer(u32(5, 0xffffffff)))).not.toHaveProperty('speed')
    expect(readLinkState(answer(u8(2, 1)))).toEqual({ up: true })
    expect(readLinkInfo(answer(u8(2, 3)))).toEqual({ port: 3 })
  })

  test('features: in a set without a mask all named bits are on', () => {
    const found = readFeatures(
      answer(set(2, true, bit(0, 'a', false), bit(1, 'b', false)), set(4, false, bit(0, 'a', true), bit(1, 'b', false))),
    )
    expect([...found.changeable]).toEqual(['a', 'b'])
    expect([...found.active]).toEqual(['a'])
  })

  test('encoded settings decode to the same values', () => {
    expect(readRings(writeRings(2, { rx: 512, txPush: false, tcpDataSplit: false }))).toEqual({
      rx: 512,
      txPush: false,
      tcpDataSplit: false,
    })
    expect(readChannels(writeChannels(2, { combined: 2 }))).toEqual({ combined: 2 })
    expect(readWake(writeWake(2, ['phy', 'magic']))).toEqual(['phy', 'magic'])
    expect([...readFeatures(writeFeatures(2, { 'rx-gro': true, tso: false })).requested]).toEqual(['rx-gro'])
    expect(() => writeWake(2, ['bell'])).toThrow('"bell" cannot wake a machine')
    expect(writeEthtoolQuery(15, 2).length).toBeGreaterThan(4)
  })
})

test('any bytes decode or are refused, with bounded memory', () => {
  const readers = [readRings, readChannels, readWake, readFeatures, readFeatureNames, readLinkInfo, readLinkModes, readLinkState]
  const true_ = answer(set(2, true, bit(0, 'a', true)), set(3, false, bit(1, 'b', true)), u32(5, 7))
  const bytes = fc.oneof(
    fc.uint8Array({ maxLength: 512 }),
    fc.nat(true_.length).map((end) => Uint8Array.from(true_.subarray(0, end))),
    fc.tuple(fc.nat(true_.length - 1), fc.nat(255)).map(([at, value]) => {
      const bent = Uint8Array.from(true_)
      bent[at] = value
      return bent
    }),
  )
  fc.assert(
    fc.property(bytes, fc.constantFrom(...readers), (body, read) => {
      try {
        const found = read(body)
        if (Array.isArray(found)) expect(found.length).toBeLessThanOrEqual(4096)
      } catch (error) {
        if (!(error instanceof DecodeError)) throw error
      }
    }),
    { numRuns: runs(3000) },
  )
})
