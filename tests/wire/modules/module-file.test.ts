import { expect, test } from 'bun:test'
import { DecodeError } from '../../../src/wire/decode-error.ts'
import { parseModule } from '../../../src/wire/modules/module-file.ts'
import { builtModule } from './built-module.ts'

const info = ['name=x', 'vermagic=6.1.0 SMP', 'alias=a=b', 'retpoline']

test('of a module its strings, the symbols that it exports and needs, and whether it is signed are read', () => {
  const module = parseModule(builtModule({ info, exported: ['out', 'other'], needed: ['printk', 'in'] }))
  expect(module).toEqual({
    info: [
      ['name', 'x'],
      ['vermagic', '6.1.0 SMP'],
      ['alias', 'a=b'],
      ['retpoline', 'retpoline'],
    ],
    exported: ['out', 'other'],
    needed: ['printk', 'in'],
    signed: true,
  })
})

test('without versions of symbols the strings of the exported ones count', () => {
  expect(parseModule(builtModule({ info, exported: ['out', 'other'], versions: false })).exported).toEqual(['out', 'other'])
})

test.each([
  ['without a signature', builtModule({ info, signed: false })],
  ['cut off behind it', builtModule({ info }).subarray(0, -1)],
  ['with a length that leads before the module', Object.assign(builtModule({ info }), { [builtModule({ info }).length - 32]: 0xff })],
  ['of another kind', Object.assign(builtModule({ info }), { [builtModule({ info }).length - 38]: 1 })],
])('a module %s is not signed', (_, bytes) => {
  expect(parseModule(bytes).signed).toBe(false)
})

const changed = (change: (bytes: Buffer) => void) => {
  const bytes = builtModule({ info })
  change(bytes)
  return bytes
}
test.each([
  ['no file of this kind', Buffer.from('\x1f\x8b compressed'.padEnd(100)), 'it is no ELF file'],
  ['for 32 bits', changed((bytes) => bytes.writeUInt8(1, 4)), 'no relocatable object'],
  ['a program', changed((bytes) => bytes.writeUInt16LE(2, 16)), 'no relocatable object'],
  ['with sections outside', changed((bytes) => bytes.writeBigUInt64LE(2n ** 63n, 40)), 'its sections lie outside'],
  ['with names nowhere', changed((bytes) => bytes.writeUInt16LE(99, 62)), 'its sections have no names'],
])('a module that is %s is refused', (_, bytes, reason) => {
  expect(() => parseModule(bytes)).toThrow(DecodeError)
  expect(() => parseModule(bytes)).toThrow(reason)
})
