import { expect, test } from 'bun:test'
import { DbusAuthentication } from '../../../src/wire/dbus/authentication.ts'

const guid = '0123456789abcdef0123456789abcdef'

test.each([
  [
    'Go queries the mechanisms first',
    ['\0AUTH\r\n', 'AUTH EXTERNAL 30\r\n', 'NEGOTIATE_UNIX_FD\r\n', 'BEGIN\r\n'],
    ['REJECTED EXTERNAL', `OK ${guid}`, 'AGREE_UNIX_FD', ''],
  ],
  ['systemd sends everything at once', ['\0AUTH EXTERNAL\r\nDATA\r\nNEGOTIATE_UNIX_FD\r\nBEGIN\r\n'], [`DATA|OK ${guid}|AGREE_UNIX_FD`]],
  [
    'other mechanisms are rejected',
    ['\0AUTH DBUS_COOKIE_SHA1 30\r\n', 'WHAT\r\n', 'AUTH EXTERNAL 30\r\nBEGIN\r\n'],
    ['REJECTED EXTERNAL', 'ERROR', `OK ${guid}`],
  ],
])('%s', (_, inputs, replies) => {
  const authentication = new DbusAuthentication(guid)
  const steps = inputs.map((input) => authentication.receive(Buffer.from(input)))
  expect(steps.map((step) => step.replies.trimEnd().replaceAll('\r\n', '|'))).toEqual(replies)
  expect(steps.map(({ used }) => used)).toEqual(inputs.map((input) => input.length))
  expect(steps.map(({ done }) => done)).toEqual(inputs.map((_, index) => index === inputs.length - 1))
})

test('messages after BEGIN and incomplete lines are left', () => {
  const authentication = new DbusAuthentication(guid)
  expect(authentication.receive(Buffer.from('\0AUTH EXTERNAL 30\r\nBEG'))).toMatchObject({ used: 19, done: false })
  expect(authentication.receive(Buffer.from('BEGIN\r\nl\x01'))).toMatchObject({ used: 7, done: true })
})

test.each([
  ['no NUL at first', 'AUTH\r\n', 'the first byte is not NUL'],
  ['messages without authentication', '\0BEGIN\r\n', 'BEGIN before OK'],
  ['a line without an end', `\0${'A'.repeat(600)}`, 'more than 512 bytes'],
  ['lines without an end', `\0${'AUTH\r\n'.repeat(20)}`, 'more than 16 lines'],
])('%s: the client is refused', (_, input, message) => {
  expect(() => new DbusAuthentication(guid).receive(Buffer.from(input))).toThrow(message)
})
