import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { DecodeError } from '../../src/wire/decode-error.ts'
import { parseSmbios, smbiosFields } from '../../src/wire/smbios.ts'
import { structure } from './smbios-table.ts'

const end = structure(127, [], [])

describe('the firmware’s table', () => {
  test('is read structure by structure, each with its strings', () => {
    const found = parseSmbios(
      Buffer.concat([structure(0, [1, 2], ['SeaBIOS', '1.16']), structure(32, [0], []), structure(1, [1], ['QEMU']), end]),
    )
    expect(found.map(({ type, strings }) => [type, strings])).toEqual([
      [0, ['SeaBIOS', '1.16']],
      [32, []],
      [1, ['QEMU']],
      [127, []],
    ])
  })

  test('decodes the UUID with its first three fields little endian', () => {
    const uuid = [0x33, 0x22, 0x11, 0x00, 0x55, 0x44, 0x77, 0x66, 0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff]
    const [system] = parseSmbios(structure(1, [0, 0, 0, 0, ...uuid], []))
    expect(smbiosFields(system!).uuid(8)).toBe('00112233-4455-6677-8899-aabbccddeeff')
    const [blank] = parseSmbios(structure(1, [0, 0, 0, 0, ...uuid.map(() => 255)], []))
    expect(smbiosFields(blank!).uuid(8)).toBeUndefined()
  })

  test('that is truncated is refused, and missing fields are undefined', () => {
    const whole = structure(1, [1], ['QEMU'])
    expect(() => parseSmbios(whole.subarray(0, 7))).toThrow(DecodeError)
    expect(() => parseSmbios(Uint8Array.of(1, 200, 0, 0, 0))).toThrow(DecodeError)
    expect(parseSmbios(new Uint8Array())).toEqual([])
    const fields = smbiosFields(parseSmbios(whole)[0]!)
    expect([fields.text(4), fields.text(5), fields.word(4), fields.uuid(4)]).toEqual(['QEMU', undefined, undefined, undefined])
  })

  test('of any bytes decodes or is refused', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
        try {
          for (const found of parseSmbios(bytes)) smbiosFields(found).uuid(8)
        } catch (error) {
          expect(error).toBeInstanceOf(DecodeError)
        }
      }),
    )
  })
})
