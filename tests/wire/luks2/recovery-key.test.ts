import { expect, test } from 'bun:test'
import { DecodeError } from '../../../src/wire/decode-error.ts'
import { newRecoveryKey, parseRecoveryKey } from '../../../src/wire/luks2/recovery-key.ts'

test('a key is random, and read as people type it', () => {
  const key = newRecoveryKey()
  expect(key).toMatch(/^([0-9A-HJKMNP-TV-Z]{4}-){8}[0-9A-HJKMNP-TV-Z]{4}$/)
  expect(newRecoveryKey()).not.toBe(key)
  for (const typed of [
    key,
    key.toLowerCase(),
    ` ${key.replaceAll('-', ' ')}\n`,
    key.replaceAll('-', ''),
    key.replaceAll('0', 'o').replaceAll('1', 'l'),
  ])
    expect(parseRecoveryKey(typed)).toBe(key)
})

test('every single mistyped letter is noticed, and so are two that changed places', () => {
  const key = newRecoveryKey()
  const other = (letter: string) => (letter === '7' ? '8' : '7')
  let missed = 0
  for (const [at, letter] of [...key].entries()) {
    if (letter === '-') continue
    const next = key[at + 1] === '-' ? at + 2 : at + 1
    const typed = [key.slice(0, at) + other(letter) + key.slice(at + 1)]
    if (key[next] && key[next] !== letter) {
      const swapped = [...key]
      swapped[at] = key[next] ?? ''
      swapped[next] = letter
      typed.push(swapped.join(''))
    }
    for (const each of typed) {
      try {
        parseRecoveryKey(each)
        missed++
      } catch (error) {
        expect(error).toBeInstanceOf(DecodeError)
        expect((error as Error).message).not.toContain(key.slice(0, 4))
      }
    }
  }
  // One in a million is missed by chance.
  expect(missed).toBe(0)
})

test.each(['', 'ABCD', 'U'.repeat(36), `${'A'.repeat(37)}`, 'x'.repeat(5000), 'Ä'.repeat(36)])('what is no key is refused: %#', (text) => {
  expect(() => parseRecoveryKey(text)).toThrow(DecodeError)
})
