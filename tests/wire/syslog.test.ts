import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { parseSyslog } from '../../src/wire/syslog.ts'

const read = (text: string) => JSON.parse(JSON.stringify(parseSyslog(Buffer.from(text))))

// The first three are the examples of RFC 5424 section 6.5, the next two those of RFC 3164 section 5.4.
describe('messages to /dev/log', () => {
  test.each([
    [
      "<34>1 2003-10-11T22:14:15.003Z mymachine.example.com su - ID47 - \ufeff'su root' failed for lonvick on /dev/pts/8",
      {
        facility: 4,
        severity: 2,
        timestamp: '2003-10-11T22:14:15.003Z',
        hostname: 'mymachine.example.com',
        tag: 'su',
        messageId: 'ID47',
        content: "'su root' failed for lonvick on /dev/pts/8",
      },
    ],
    [
      '<165>1 2003-10-11T22:14:15.003Z mymachine.example.com evntslog - ID47 [exampleSDID@32473 iut="3" eventSource="Application" eventID="1011"] An application event',
      {
        facility: 20,
        severity: 5,
        timestamp: '2003-10-11T22:14:15.003Z',
        hostname: 'mymachine.example.com',
        tag: 'evntslog',
        messageId: 'ID47',
        structuredData: { 'exampleSDID@32473': { iut: '3', eventSource: 'Application', eventID: '1011' } },
        content: 'An application event',
      },
    ],
    [
      '<165>1 2003-10-11T22:14:15.003Z host evntslog 12 - [a@1 k="q\\"u\\]o\\\\te"][b@1]',
      {
        facility: 20,
        severity: 5,
        timestamp: '2003-10-11T22:14:15.003Z',
        hostname: 'host',
        tag: 'evntslog',
        pid: '12',
        structuredData: { 'a@1': { k: 'q"u]o\\te' }, 'b@1': {} },
        content: '',
      },
    ],
    [
      "<34>Oct 11 22:14:15 mymachine su: 'su root' failed for lonvick on /dev/pts/8",
      {
        facility: 4,
        severity: 2,
        timestamp: 'Oct 11 22:14:15',
        hostname: 'mymachine',
        tag: 'su',
        content: "'su root' failed for lonvick on /dev/pts/8",
      },
    ],
    ['<0>a message without any form', { facility: 0, severity: 0, content: 'a message without any form' }],
    [
      '<30>Nov  2 08:00:01 iscsid[712]: connection: 1 is up\n',
      { facility: 3, severity: 6, timestamp: 'Nov  2 08:00:01', tag: 'iscsid', pid: '712', content: 'connection: 1 is up' },
    ],
    ['<30>agent[1]: ready', { facility: 3, severity: 6, tag: 'agent', pid: '1', content: 'ready' }],
    ['no priority at all', { facility: 1, severity: 5, content: 'no priority at all' }],
    ['<999>too high', { facility: 1, severity: 5, content: '<999>too high' }],
    ['', { facility: 1, severity: 5, content: '' }],
  ])('%s', (text, wanted) => expect(read(text)).toEqual(wanted as object))

  test('any datagram parses, and no plain text is lost', () => {
    fc.assert(fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => typeof parseSyslog(bytes).content === 'string'))
    fc.assert(
      fc.property(
        fc.string().filter((text) => !/[<\0\n]/.test(text)),
        (text) => parseSyslog(Buffer.from(text)).content === text,
      ),
    )
  })
})
