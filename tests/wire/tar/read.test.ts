import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { TarError, tarChecksum, tarFields } from '../../../src/wire/tar/format.ts'
import { findTarPlaces, tarEntries } from '../../../src/wire/tar/read.ts'
import { type TarMember, tarHeader, writeTar } from '../../../src/wire/tar/write.ts'
import { runs } from '../../support/runs.ts'
import { collected, inPieces } from './pieces.ts'

const file = (path: string, content = path): TarMember => ({ path, type: 'file', mode: 0o644, content: Buffer.from(content) })
const archiveOf = (...members: TarMember[]) => collected(writeTar(members))
const places = (archive: Uint8Array) => findTarPlaces(async (offset, length) => archive.subarray(offset, offset + length), archive.length)

async function names(archive: Uint8Array): Promise<string[]> {
  const found: string[] = []
  const files: { name: string; offset: number; size: number }[] = []
  for await (const { name, type, offset, size } of tarEntries(inPieces(archive))) {
    found.push(name)
    if (type === 'file') files.push({ name: name.replace(/^(\.?\/)+/, ''), offset, size })
  }
  expect(await places(archive)).toEqual(files)
  return found
}

/** The header changed, with a checksum that fits. */
function changed(archive: Uint8Array, change: (header: Buffer) => void): Buffer {
  const bytes = Buffer.from(archive)
  change(bytes)
  bytes.write(`${tarChecksum(bytes.subarray(0, 512)).toString(8).padStart(6, '0')}\0 `, tarFields.checksum[0])
  return bytes
}

describe('entries', () => {
  test('may be left or read in part, and what follows the archive is read as well', async () => {
    let given = 0
    async function* counted(archive: Uint8Array) {
      for await (const piece of inPieces(archive, 100)) {
        given += piece.length
        yield piece
      }
    }
    const archive = Buffer.concat([await archiveOf(file('a', 'x'.repeat(2000)), file('b', 'second'), file('c')), Buffer.alloc(3000)])
    const read: string[] = []
    for await (const { name, content } of tarEntries(counted(archive))) {
      if (name === 'a') for await (const _ of content) break
      if (name === 'b') read.push((await collected(content)).toString())
      read.push(name)
    }
    expect(read).toEqual(['a', 'second', 'b', 'c'])
    expect(given).toBe(archive.length)
  })

  test('take back a pax header for all entries with an empty value', async () => {
    const record = (text: string) => Buffer.from(`${text.length + 3} ${text}`.padEnd(512, '\0'))
    const pax = (letter: string, text: string) => {
      const length = text.length + 4
      const header = changed(tarHeader({ path: 'pax', type: 'file', mode: 0, size: length }), (bytes) => bytes.write(letter, 156))
      return Buffer.concat([header, record(`${text}\n`)])
    }
    const [one, two] = [await archiveOf(file('one')), await archiveOf(file('two'))]
    const archive = Buffer.concat([pax('g', 'mtime=77'), one.subarray(0, 1024), pax('x', 'mtime='), two])
    const times: unknown[] = []
    for await (const { name, modified } of tarEntries(inPieces(archive))) times.push([name, modified])
    expect(times).toEqual([
      ['one', 77],
      ['two', 0],
    ])
  })
})

describe('an archive is refused', () => {
  test('when it is truncated anywhere, also between two entries', async () => {
    const whole = await archiveOf(file('a', 'x'.repeat(600)), file('b'))
    await fc.assert(
      fc.asyncProperty(fc.nat(whole.length - 1024), async (length) => {
        const cut = whole.subarray(0, length)
        await expect(names(cut)).rejects.toThrow('tar archive: truncated')
        await expect(places(cut)).rejects.toThrow('tar archive: truncated')
      }),
      { numRuns: runs(60) },
    )
  })

  test.each([
    ['its checksum is wrong', (header: Buffer) => header.write('b', 0), false],
    ['size of an entry is "9"', (header: Buffer) => header.write('9\0\0\0\0\0\0\0\0\0\0\0', 124), true],
    ['uid of an entry is too large', (header: Buffer) => header.fill(0xff, 108, 116), true],
    ['a name is too long', (header: Buffer) => header.write('L', 156) + header.write('00010000000', 124), true],
    ['it has a sparse file', (header: Buffer) => header.write('S', 156), true],
    ['truncated', (header: Buffer) => header.write('77777777777', 124), true],
  ] as const)('when %s', async (message, change, sound) => {
    const archive = await archiveOf(file('a'))
    const bad = Buffer.from(archive)
    if (sound) changed(archive, change).copy(bad)
    else change(bad)
    await expect(names(bad)).rejects.toThrow(message)
    await expect(places(bad)).rejects.toBeInstanceOf(TarError)
  })

  test('or read, whatever is changed in it', async () => {
    const good = await archiveOf(
      file('n'.repeat(150)),
      { ...file('link'), type: 'symlink', target: 't'.repeat(150) },
      file('b', 'x'.repeat(600)),
    )
    await fc.assert(
      fc.asyncProperty(fc.nat(good.length - 1), fc.nat(255), fc.nat(good.length), async (at, byte, length) => {
        const bad = Buffer.from(good.subarray(0, length))
        if (at < bad.length) bad[at] = byte
        for (const read of [names, places]) await read(bad).catch((error) => expect(error).toBeInstanceOf(TarError))
      }),
      { numRuns: runs(60) },
    )
  })
})
