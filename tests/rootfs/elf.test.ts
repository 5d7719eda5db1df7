import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { ElfError, readElf } from '../../rootfs/debian/elf.ts'

const runtime = new Uint8Array(readFileSync(process.execPath))

test("a program's libraries and dynamic linker are read", () => {
  const links = readElf(runtime)!
  expect(links.needed).toContain('libc.so.6')
  expect(links.interpreter).toBe('/lib64/ld-linux-x86-64.so.2')
  expect(links.soname).toBeUndefined()
})

test('what is no ELF file has no links', () => {
  expect(readElf(new Uint8Array())).toBeUndefined()
  expect(readElf(Buffer.from('#!/usr/bin/env bun\n'))).toBeUndefined()
})

test('a file that ends early is refused', () => {
  for (const length of [4, 16, 63, 64, 100, 400]) expect(() => readElf(runtime.subarray(0, length))).toThrow(ElfError)
})

test('damaged headers end in an answer or a typed error', () => {
  const head = runtime.slice(0, 4096)
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.integer({ min: 16, max: 1023 }), fc.integer({ min: 0, max: 255 })), { maxLength: 8 }), (changes) => {
      const bytes = head.slice()
      for (const [at, value] of changes) bytes[at] = value
      try {
        readElf(bytes)
      } catch (error) {
        expect(error).toBeInstanceOf(ElfError)
      }
    }),
  )
})
