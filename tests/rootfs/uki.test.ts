import { expect, test } from 'bun:test'
import { makeUki } from '../../src/programs/factory/release/uki.ts'
import { addSections, PeError, peImageSize, peSections, peSigned, replaceSection } from '../../src/wire/efi/pe.ts'
import { program } from './program.ts'

const parts = {
  stub: program(),
  osRelease: 'ID=ichor\n',
  commandLine: 'console=ttyS0',
  initramfs: Buffer.alloc(5000, 7),
  kernel: program(0x900000),
}

test('the sections of a kernel image hold what was given, in their order', () => {
  const image = makeUki(parts)
  const sections = peSections(image)
  expect(sections.map(({ name }) => name)).toEqual(['.text', '.osrel', '.cmdline', '.initrd', '.linux'])
  const content = (name: string) => {
    const { offset, size } = sections.find((each) => each.name === name)!
    return image.subarray(offset, offset + size)
  }
  expect(content('.osrel').toString()).toBe('ID=ichor\n')
  expect(content('.cmdline').toString()).toBe('console=ttyS0')
  expect(content('.initrd')).toEqual(parts.initramfs)
  expect(content('.linux')).toEqual(parts.kernel)
})

test('sections overlap neither in the file nor in memory, and begin where a CD can name them', () => {
  const image = makeUki(parts)
  const added = peSections(image).slice(1)
  for (const [at, { offset, address, size }] of added.entries()) {
    expect(offset % 2048).toBe(0)
    expect(address % 4096).toBe(0)
    const next = added[at + 1]
    if (next) {
      expect(next.offset).toBeGreaterThanOrEqual(offset + size)
      expect(next.address).toBeGreaterThanOrEqual(address + size)
    }
  }
  // The kernel unpacks itself behind its own bytes.
  expect(peImageSize(image)).toBe(added.at(-1)!.address + 0x900000)
})

test('a section gets other content in its place, of which only the headers are needed', () => {
  const image = makeUki(parts)
  const replaced = (content: string) =>
    replaceSection(image.subarray(0, 2048), image.length, { name: '.cmdline', content: Buffer.from(content) })
  const changed = Buffer.from(image)
  for (const { offset, bytes } of replaced('quiet console=tty0')) changed.set(bytes, offset)
  expect(changed.equals(makeUki({ ...parts, commandLine: 'quiet console=tty0' }))).toBe(true)
  expect(() => replaced('x'.repeat(2049))).toThrow('has room for 2048 bytes, not 2049')
  expect(() => replaceSection(image, image.length, { name: '.none', content: Buffer.alloc(1) })).toThrow('no section ".none"')
})

test('a program is signed when its table of certificates has content', () => {
  const image = program()
  image.writeUInt32LE(16, 0x98 + 108)
  expect(peSigned(image)).toBe(false)
  image.writeUInt32LE(8, 0x98 + 112 + 4 * 8 + 4)
  expect(peSigned(image)).toBe(true)
})

test('a stub without room for more sections is refused', () => {
  const many = Array.from({ length: 20 }, (_, at) => ({ name: `.s${at}`, content: Buffer.alloc(1) }))
  expect(() => addSections(program(), many)).toThrow('no room for more sections')
})

test.each([
  ['empty', Buffer.alloc(0), 'does not begin with MZ'],
  ['something else', Buffer.alloc(4096, 1), 'does not begin with MZ'],
  ['cut off', program().subarray(0, 0x90), 'no PE header'],
  ['for 32 bits', Buffer.from(program()).fill(1, 0x98, 0x9a), 'no program for 64 bits'],
])('what is no program of the firmware is refused: %s', (_, bytes, message) => {
  expect(() => peSections(bytes)).toThrow(message)
  expect(() => peSections(bytes)).toThrow(PeError)
})

test('a section that lies outside of the file is refused', () => {
  const bytes = program()
  bytes.writeUInt32LE(0x7fffffff, 0x98 + 240 + 16)
  expect(() => peSections(bytes)).toThrow('section ".text" lies outside')
})
