import { expect, test } from 'bun:test'
import { bootOptionName, bootOptionTitle, formatBootOption, formatBootOrder, parseBootOrder } from '../../../src/wire/efi/boot-option.ts'

const partition = { index: 1, uuid: '6f0ba7ce-2a49-4e5c-9a36-0c2b8c8ac0de', firstSector: 2048, sectors: 4_302_848 }
const option = { title: 'Ichor', partition, file: '\\EFI\\BOOT\\BOOTX64.EFI' }

test('an option has partition and file in the layout of the specification', () => {
  const bytes = Buffer.from(formatBootOption(option))
  expect(bytes.readUInt32LE(0)).toBe(1)
  expect(bootOptionTitle(bytes)).toBe('Ichor')
  const paths = 6 + ('Ichor'.length + 1) * 2
  expect(bytes.readUInt16LE(4)).toBe(bytes.length - paths)
  expect(bytes.subarray(paths, paths + 4).toString('hex')).toBe('04012a00')
  expect(bytes.readBigUInt64LE(paths + 8)).toBe(2048n)
  expect(bytes.subarray(paths + 24, paths + 40).toString('hex')).toBe('cea70b6f492a5c4e9a360c2b8c8ac0de')
  expect(bytes.subarray(-4).toString('hex')).toBe('7fff0400')
})

test('orders and names round-trip', () => {
  expect(parseBootOrder(formatBootOrder([0x10, 0, 0xabc]))).toEqual([0x10, 0, 0xabc])
  expect(bootOptionName(0xabc)).toBe('Boot0ABC')
  expect(() => parseBootOrder(new Uint8Array(3))).toThrow('an odd number')
  expect(() => bootOptionTitle(Buffer.from('01000000', 'hex'))).toThrow('does not end')
})
