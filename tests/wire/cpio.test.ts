import { expect, test } from 'bun:test'
import * as fc from 'fast-check'
import { type CpioEntry, cpioHeader, cpioPadding, cpioTrailer, cpioTypes, parseCpio } from '../../src/wire/cpio.ts'
import { DecodeError } from '../../src/wire/decode-error.ts'

function archive(entries: readonly Pick<CpioEntry, 'name' | 'mode' | 'content' | 'device'>[]): Uint8Array {
  return Buffer.concat([
    ...entries.flatMap(({ name, mode, content, device }, at) => [
      cpioHeader({ name, mode, size: content.length, ...(device && { device }) }, at + 1),
      content,
      cpioPadding(content.length),
    ]),
    cpioTrailer(),
  ])
}

test('a header has the format of the kernel', () => {
  const bytes = Buffer.from(cpioHeader({ name: 'init', mode: cpioTypes.file | 0o755, size: 258 }, 7))
  const words = ['00000007', '000081ed', '00000000', '00000000', '00000001', '00000000', '00000102']
  const rest = ['00000000', '00000000', '00000000', '00000000', '00000005', '00000000']
  expect(bytes.toString('latin1')).toBe(`070701${words.join('')}${rest.join('')}init\0\0`)
  expect(bytes.length % 4).toBe(0)
})

test('cpio lists a written archive', async () => {
  if (!Bun.which('cpio')) return
  const bytes = archive([
    { name: 'dev', mode: cpioTypes.dir | 0o755, content: new Uint8Array() },
    { name: 'dev/console', mode: cpioTypes.character | 0o600, content: new Uint8Array(), device: { major: 5, minor: 1 } },
    { name: 'init', mode: cpioTypes.file | 0o755, content: Buffer.from('odd') },
  ])
  const child = Bun.spawn(['cpio', '-itv', '--numeric-uid-gid', '--quiet'], { stdin: bytes, stdout: 'pipe', stderr: 'pipe' })
  const lines = (await new Response(child.stdout).text()).trim().split('\n')
  expect(await child.exited).toBe(0)
  expect(lines.map((line) => line.split(/\s+/)[0])).toEqual(['drwxr-xr-x', 'crw-------', '-rwxr-xr-x'])
  expect(lines.map((line) => line.split(/\s+/).at(-1))).toEqual(['dev', 'dev/console', 'init'])
})

test('an archive round-trips', () => {
  const entry = fc.record({
    name: fc.stringMatching(/^[a-z][a-z/.]{0,30}$/),
    mode: fc.integer({ min: 0, max: 0o7777 }).map((mode) => cpioTypes.file | mode),
    content: fc.uint8Array({ maxLength: 40 }),
  })
  fc.assert(
    fc.property(fc.array(entry, { maxLength: 8 }), (entries) => {
      const found = parseCpio(archive(entries)).map(({ name, mode, content }) => ({ name, mode, content: new Uint8Array(content) }))
      expect(found).toEqual(entries)
    }),
  )
})

test('a truncated or modified archive throws a DecodeError only', () => {
  const whole = archive([{ name: 'a', mode: cpioTypes.file | 0o644, content: Buffer.from('hello') }])
  for (let end = 0; end < whole.length - 4; end++) expect(() => parseCpio(whole.subarray(0, end))).toThrow(DecodeError)
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 400 }), fc.nat({ max: 120 }), (noise, at) => {
      const bytes = Uint8Array.from(whole)
      bytes.set(noise.subarray(0, Math.max(0, bytes.length - at)), at)
      try {
        parseCpio(bytes)
      } catch (error) {
        expect(error).toBeInstanceOf(DecodeError)
      }
    }),
  )
})
