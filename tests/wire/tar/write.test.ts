import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { TarError, type TarType, tarBlock } from '../../../src/wire/tar/format.ts'
import { findTarPlaces, tarEntries } from '../../../src/wire/tar/read.ts'
import { type TarHeader, type TarMember, tarEnd, tarHeader, writeTar } from '../../../src/wire/tar/write.ts'
import { runs } from '../../support/runs.ts'
import { collected, inPieces } from './pieces.ts'

const entry = (path: string, more: Partial<TarHeader> = {}): TarHeader => ({ path, type: 'file', mode: 0o644, ...more })

describe('a header', () => {
  test('is one block where ustar can represent the entry', () => {
    const long = `${'d'.repeat(90)}/${'e'.repeat(60)}/${'f'.repeat(100)}`
    for (const plain of [
      entry('a', { size: 8 ** 11 - 1 }),
      entry(long),
      entry('a', { uid: 8 ** 7 - 1, type: 'symlink', target: 't'.repeat(100) }),
    ])
      expect(tarHeader(plain)).toHaveLength(tarBlock)
  })

  test.each([
    ['a long name', { path: 'n'.repeat(101) }],
    ['a long name of another script', { path: 'ü'.repeat(60) }],
    ['a long target', { type: 'symlink', target: 't'.repeat(101) }],
    ['a large file', { size: 8 ** 11 }],
    ['a large user id', { uid: 8 ** 7 }],
    ['a large group id', { gid: 2 ** 32 - 2 }],
    ['a time before 1970', { modified: -1 }],
    ['a time with a fraction', { modified: 1.5 }],
  ] as const)('has a pax header before it for %s', async (_, more) => {
    const member = { ...entry('a'), ...more }
    const header = tarHeader(member)
    expect(header).toHaveLength(3 * tarBlock)
    expect(String.fromCharCode(header[156] ?? 0)).toBe('x')
    const { size = 0, uid = 0, gid = 0, modified = 0, target = '', path } = member
    for await (const read of tarEntries(inPieces(Buffer.concat([header, tarEnd])))) {
      expect(read).toMatchObject({ name: path, size, uid, gid, modified, target })
      break
    }
  })

  test.each([
    entry(''),
    entry('/absolute'),
    entry('a/../b'),
    entry('a\0b'),
    entry('a', { size: -1 }),
    entry('a', { size: 0.5 }),
    entry('a', { type: 'symlink', target: 'a\0' }),
  ])('is refused for what no archive may have: %j', (wrong) => {
    expect(() => tarHeader(wrong)).toThrow(TarError)
  })
})

describe('an archive', () => {
  const name = fc.stringMatching(/^[a-zé ="\n]{1,60}$/).filter((text) => text !== '..')
  const member = fc.record({
    path: fc.array(name, { minLength: 1, maxLength: 6 }).map((names) => names.join('/')),
    type: fc.constantFrom<TarType>('file', 'directory', 'symlink', 'hardlink', 'character', 'block', 'fifo'),
    mode: fc.nat(0o7777),
    uid: fc.nat(2 ** 32),
    gid: fc.nat(2 ** 32),
    modified: fc.integer({ min: -(2 ** 33), max: 2 ** 40 }),
    target: fc.stringMatching(/^[a-z/]{0,150}$/),
    content: fc.uint8Array({ maxLength: 1100 }),
  })
  const members = fc.array(member, { maxLength: 6 })

  test('that is written is read as it was, in whatever pieces it comes', async () => {
    await fc.assert(
      fc.asyncProperty(members, fc.integer({ min: 1, max: 2000 }), async (given, size) => {
        const archive = await collected(writeTar(given))
        expect(archive.length % tarBlock).toBe(0)
        const found: unknown[] = []
        for await (const { name, type, mode, uid, gid, modified, target, content } of tarEntries(inPieces(archive, size)))
          found.push({
            path: name.replace(/\/$/, ''),
            type,
            mode,
            uid,
            gid,
            modified,
            target,
            content: new Uint8Array(await collected(content)),
          })
        expect(found).toEqual(given.map((each) => (each.type === 'file' ? each : { ...each, content: new Uint8Array() })))
      }),
      { numRuns: runs(60) },
    )
  })

  test('has its files where they are found at random', async () => {
    await fc.assert(
      fc.asyncProperty(members, async (given) => {
        const archive = await collected(writeTar(given))
        const places = await findTarPlaces(async (offset, length) => archive.subarray(offset, offset + length), archive.length)
        const contents = places.map(({ name, offset, size }) => [name, new Uint8Array(archive.subarray(offset, offset + size))])
        expect(contents).toEqual(given.filter(({ type }) => type === 'file').map(({ path, content }) => [path, content]))
      }),
      { numRuns: runs(60) },
    )
  })

  test('is refused when a file has another size than its header', async () => {
    const file = (size: number): TarMember => ({ ...entry('log', { size }), content: inPieces(Buffer.from('four')) })
    expect((await collected(writeTar([file(4)]))).length).toBe(4 * tarBlock)
    for (const size of [3, 5])
      await expect(collected(writeTar([file(size)]))).rejects.toThrow(
        `tar entry "log": its content has changed, it is not of ${size} bytes`,
      )
  })
})
