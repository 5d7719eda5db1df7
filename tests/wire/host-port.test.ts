import { describe, expect, test } from 'bun:test'
import {
  bracketed,
  formatHostPort,
  hostPortOfUrl,
  parseHostPort,
  parseIpPort,
  splitHostPort,
  unbracketed,
} from '../../src/wire/host-port.ts'

const hosts: [string, string, number | undefined][] = [
  ['10.0.0.1', '10.0.0.1', undefined],
  ['10.0.0.1:6443', '10.0.0.1', 6443],
  ['node', 'node', undefined],
  ['example.org:0', 'example.org', 0],
  ['fd00::1', 'fd00::1', undefined],
  ['[fd00::1]', 'fd00::1', undefined],
  ['[fd00::1]:51820', 'fd00::1', 51820],
  ['[fe80::1%eth0]:53', 'fe80::1%eth0', 53],
]

describe('host and port', () => {
  test.each(hosts)('%s is %s and port %p', (text, host, port) => {
    expect(parseHostPort(text)).toEqual(port === undefined ? undefined : { host, port })
    expect(parseHostPort(text, 53)).toEqual({ host, port: port ?? 53 })
    expect(splitHostPort(text, 53)).toEqual({ host, port: port ?? 53 })
  })

  test.each(['', ':53', 'a:b', 'a:1:2', '[::1', '::1]:2', '[]:1', 'a b:1', 'a/b:1', 'a:65536', 'a:123456', 'a:-1'])(
    '%p is malformed',
    (text) => {
      expect(parseHostPort(text, 53)).toBeUndefined()
    },
  )

  test('a malformed one is a host alone where there must be one', () => {
    expect(splitHostPort('a:b', 53)).toEqual({ host: 'a:b', port: 53 })
    expect(splitHostPort(':50000', 53)).toEqual({ host: '', port: 50_000 })
    expect(splitHostPort('', 53)).toEqual({ host: '', port: 53 })
  })

  test('are printed with brackets for IPv6', () => {
    for (const [, host] of hosts) expect(parseHostPort(formatHostPort(host, 7))).toEqual({ host, port: 7 })
    expect(formatHostPort('fd00::1', 53)).toBe('[fd00::1]:53')
    expect([bracketed('[::1]'), bracketed('::1'), bracketed('node')]).toEqual(['[::1]', '[::1]', 'node'])
    expect([unbracketed('[::1]'), unbracketed('::1'), unbracketed('node')]).toEqual(['::1', '::1', 'node'])
  })
})

test('an address with a port is its bytes', () => {
  expect(parseIpPort('10.0.0.1:51820')).toEqual({ address: Uint8Array.of(10, 0, 0, 1), port: 51_820 })
  expect(parseIpPort('[::1]:1')?.address).toHaveLength(16)
  for (const text of ['10.0.0.1', '::1', 'node:1', '10.0.0.256:1', '10.0.0.1:65536']) expect(parseIpPort(text)).toBeUndefined()
})

test('a URL has a host without brackets, and a port', () => {
  expect(hostPortOfUrl('https://[fd00::1]:6443/path')).toEqual({ host: 'fd00::1', port: 6443 })
  expect(hostPortOfUrl('https://example.org')).toEqual({ host: 'example.org', port: 443 })
  expect(hostPortOfUrl('http://example.org', 80)).toEqual({ host: 'example.org', port: 80 })
  expect([hostPortOfUrl('example.org'), hostPortOfUrl(''), hostPortOfUrl('mailto:a@b')]).toEqual([undefined, undefined, undefined])
})
