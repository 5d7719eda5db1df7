/** Programs of the firmware for tests. */
import { addSections } from '../../src/wire/efi/pe.ts'

/** A program of the firmware with one section and room for four more. */
export function program(image = 0x3000): Buffer {
  const bytes = Buffer.alloc(0x600)
  bytes.write('MZ', 0)
  bytes.writeUInt32LE(0x80, 0x3c)
  bytes.write('PE\0\0', 0x80, 'latin1')
  bytes.writeUInt16LE(1, 0x86) // sections
  bytes.writeUInt16LE(240, 0x94) // optional header
  const optional = 0x98
  bytes.writeUInt16LE(0x20b, optional)
  bytes.writeUInt32LE(image, optional + 56)
  bytes.writeUInt32LE(0x400, optional + 60)
  bytes.writeUInt32LE(0x1234, optional + 64)
  const section = optional + 240
  bytes.write('.text', section)
  bytes.writeUInt32LE(0x1f0, section + 8)
  bytes.writeUInt32LE(0x1000, section + 12)
  bytes.writeUInt32LE(0x200, section + 16)
  bytes.writeUInt32LE(0x400, section + 20)
  return bytes
}

/** A stub of a version of systemd. */
export const stubOf = (version: number): Buffer =>
  addSections(program(), [{ name: '.sdmagic', content: Buffer.from(`#### LoaderInfo: systemd-stub ${version}.39-1 ####`) }])
