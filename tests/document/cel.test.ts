import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { CelError, celHolds, compileCel } from '../../src/document/cel.ts'

const link = { driver: 'virtio_net', mtu: 1500, permanent_addr: '00:1a:2b:3c:4d:5e', alt_names: ['enp0s4'], up: true }
const value = (text: string) => compileCel(text, { mac: (address = '') => address })({ link })

describe('an expression', () => {
  for (const [text, expected] of [
    ['link.driver == "virtio_net"', true],
    ['mac(link.permanent_addr).startsWith("00:1a:2b")', true],
    ["glob('00:1a:*', mac(link.permanent_addr)) && !(link.mtu > 1500)", true],
    ['link.mtu in [1500, 9000] ? "usual" : "odd"', 'usual'],
    ['1 + 2 * 3 - 4', 3],
    ['7 / 2 == 3 || link.nothing', true],
    ['size(link.alt_names) == 1 && link.alt_names[0].matches("^enp")', true],
    ['"a\\"b" + \'c\'', 'a"bc'],
    ['-link.mtu < 0x10', true],
    ['"x" in {"x": 1}', 'refused'],
    ['!link.up || false', false],
  ] as const)
    test(`${text} is ${expected}`, () => {
      if (expected === 'refused') expect(() => value(text)).toThrow(CelError)
      else expect(value(text)).toBe(expected)
    })

  test('that is wrong is told at its character', () => {
    expect(() => compileCel('link.driver ==')).toThrow('character 15: "the end" does not belong here')
    expect(() => compileCel('a # b')).toThrow('character 2: "# b" is not understood')
    expect(() => compileCel('(a')).toThrow('character 3: ")" is missing')
    expect(() => compileCel('nosuch(1)')).toThrow('there is no function "nosuch"')
    expect(() => value('link.nothing')).toThrow('there is no field "nothing"')
    expect(() => value('constructor')).toThrow('"constructor" is not known here')
    expect(() => value('link.constructor')).toThrow('there is no field "constructor"')
    expect(() => celHolds(compileCel('1'), {})).toThrow('1 is neither true nor false')
    expect(() => compileCel('('.repeat(500))).toThrow('nested too deeply')
    expect(() => compileCel('!'.repeat(500))).toThrow('nested too deeply')
    expect(() => compileCel('a'.repeat(5000))).toThrow('too long')
  })

  test('of any characters is read or refused', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc.string({ unit: fc.constantFrom('a', '1', '"', '(', ')', '[', ']', '.', ',', '?', ':', '!', '-', '&&', 'in ') }),
        ),
        (text) => {
          try {
            value(text)
          } catch (error) {
            expect(error).toBeInstanceOf(CelError)
          }
        },
      ),
    )
  })
})
