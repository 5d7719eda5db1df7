import { afterAll, expect, test } from 'bun:test'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { appendVerity, hashLevel, hashTree, rootName, VerityError, verityLine } from '../../src/programs/factory/root/verity.ts'

const folder = mkdtempSync(join(tmpdir(), 'ichor-verity-'))
afterAll(() => rmSync(folder, { recursive: true }))

const sha256 = (...parts: Uint8Array[]) => new Bun.CryptoHasher('sha256').update(Buffer.concat(parts)).digest()

test('the hash of a single block is salt and block, and the root the hash of the block it lies in', () => {
  const salt = Buffer.alloc(32, 1)
  const block = Buffer.alloc(4096, 2)
  const level = hashLevel(block, salt)
  expect(level).toHaveLength(4096)
  expect(Buffer.from(level.subarray(0, 32))).toEqual(Buffer.from(sha256(salt, block)))
  expect(level.subarray(32).every((byte) => byte === 0)).toBe(true)
  const { tree, rootHash } = hashTree(level, salt)
  expect(Buffer.from(tree)).toEqual(Buffer.from(level))
  expect(rootHash).toBe(Buffer.from(sha256(salt, level)).toString('hex'))
})

test('a tree of two levels has the higher one first', () => {
  const salt = Buffer.alloc(32, 3)
  const content = Buffer.alloc(129 * 4096)
  content.fill(9, 128 * 4096)
  const lowest = hashLevel(content, salt)
  expect(lowest).toHaveLength(2 * 4096)
  const { tree } = hashTree(lowest, salt)
  expect(tree).toHaveLength(3 * 4096)
  expect(Buffer.from(tree.subarray(0, 32))).toEqual(Buffer.from(sha256(salt, lowest.subarray(0, 4096))))
  expect(Buffer.from(tree.subarray(4096))).toEqual(Buffer.from(lowest))
})

test('a changed byte changes the root; equal content has the same', async () => {
  const make = async (name: string, change: number) => {
    const path = join(folder, name)
    const content = Buffer.alloc(200 * 4096, 5)
    content[77_777]! ^= change
    writeFileSync(path, content)
    const verity = await appendVerity(path)
    expect(readFileSync(path)).toHaveLength(verity.blocks * 4096)
    return verity
  }
  const [one, same, other] = [await make('one', 0), await make('same', 0), await make('other', 1)]
  expect(same).toEqual(one)
  expect(other.rootHash).not.toBe(one.rootHash)
  expect(one.dataBlocks).toBe(200)
  expect(one.blocks).toBe(203)
  expect(verityLine(one)).toBe(`${one.rootHash} ${one.salt} 200 203\n`)
  expect(rootName(one)).toBe(`${one.rootHash.slice(0, 16)}.sqsh`)
})

test.each([0, 1, 4095, 4097])('%d bytes are no whole blocks', (size) => {
  expect(() => hashLevel(new Uint8Array(size), new Uint8Array(32))).toThrow(VerityError)
})
