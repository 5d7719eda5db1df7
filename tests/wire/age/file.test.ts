import { expect, test } from 'bun:test'
import { decodeBech32, encodeBech32 } from '../../../src/wire/age/bech32.ts'
import { decrypt, encrypt } from '../../../src/wire/age/file.ts'
import { newIdentity, parseIdentity, parseIdentityFile, parseRecipient, recipientOf } from '../../../src/wire/age/keys.ts'

async function* inPieces(bytes: Uint8Array, length: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += length) yield bytes.subarray(at, at + length)
}
const whole = async (chunks: AsyncIterable<Uint8Array>) => Buffer.concat(await Array.fromAsync(chunks))

const identity = parseIdentity(newIdentity())
const recipient = parseRecipient(recipientOf(identity))
const content = (length: number) => Buffer.from(Array.from({ length }, (_, i) => (i * 31 + (i >> 8)) & 0xff))

test('keys of age are read and written', () => {
  // From the documentation of age-keygen(1).
  const text = 'AGE-SECRET-KEY-1N9JEPW6DWJ0ZQUDX63F5A03GX8QUW7PXDE39N8UYF82VZ9PC8UFS3M7XA9'
  expect(recipientOf(parseIdentity(text))).toBe('age1lvyvwawkr0mcnnnncaghunadrqkmuf9e6507x9y920xxpp866cnql7dp2z')
  expect(parseIdentityFile(`# created: today\n\n${text}\n`)).toHaveLength(1)
  expect(() => parseIdentityFile('# nothing\n')).toThrow('there is no identity')
  expect(() => parseRecipient('age1lvyvwawkr0mcnnnncaghunadrqkmuf9e6507x9y920xxpp866cnql7dp2y')).toThrow('checksum')
  expect(() => parseRecipient('ssh-ed25519 AAAA')).toThrow('bech32 "age"')
  expect(() => parseRecipient(encodeBech32('age', Buffer.alloc(31)))).toThrow('31 bytes')
})

test('bech32 keeps every byte, and mixed case is refused', () => {
  for (let length = 0; length < 40; length++) {
    const bytes = content(length)
    expect(Buffer.from(decodeBech32('x', encodeBech32('x', bytes)))).toEqual(bytes)
  }
  expect(() => decodeBech32('x', 'x1Qq')).toThrow('mixed')
})

for (const length of [0, 1, 65_535, 65_536, 65_537, 131_072, 200_000])
  test(`a file of ${length} bytes comes back`, async () => {
    const encrypted = await whole(encrypt(inPieces(content(length), 1000), [recipient]))
    expect(await whole(decrypt(inPieces(encrypted, 777), [parseIdentity(newIdentity()), identity]))).toEqual(content(length))
  })

test('a file for several recipients is opened by each of them, and by nobody else', async () => {
  const other = parseIdentity(newIdentity())
  const encrypted = await whole(encrypt(inPieces(content(10), 10), [parseRecipient(recipientOf(other)), recipient]))
  for (const one of [identity, other]) await expect(await whole(decrypt(inPieces(encrypted, 50), [one]))).toEqual(content(10))
  await expect(whole(decrypt(inPieces(encrypted, 50), [parseIdentity(newIdentity())]))).rejects.toThrow('encrypted to others')
})

test('a file that was cut off or changed anywhere is refused', async () => {
  const encrypted = await whole(encrypt(inPieces(content(70_000), 70_000), [recipient]))
  const read = (bytes: Uint8Array) => whole(decrypt(inPieces(bytes, 4096), [identity]))
  for (const length of [0, 10, 100, 190, 210, 65_800, encrypted.length - 1])
    await expect(read(encrypted.subarray(0, length)), `${length} bytes`).rejects.toThrow()
  for (const at of [0, 25, 80, 150, 190, 300, encrypted.length - 1]) {
    const changed = Buffer.from(encrypted)
    changed[at] = (changed[at] ?? 0) ^ 1
    await expect(read(changed), `byte ${at}`).rejects.toThrow()
  }
  await expect(read(Buffer.concat([encrypted, Buffer.of(0)]))).rejects.toThrow('damaged')
  await expect(read(Buffer.from('plain'))).rejects.toThrow('not encrypted with age')
})

test('nobody encrypts to nobody', async () => {
  await expect(whole(encrypt(inPieces(content(1), 1), []))).rejects.toThrow('no recipient')
})
