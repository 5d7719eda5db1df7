import { expect, test } from 'bun:test'
import { messageOf } from '../../src/wire/error-message.ts'

test('whatever was thrown has a message', () => {
  expect(messageOf(new TypeError('expected string, got map'))).toBe('expected string, got map')
  expect(messageOf('text')).toBe('text')
  expect(messageOf(undefined)).toBe('undefined')
  expect(messageOf({ code: 3 })).toBe('[object Object]')
})
