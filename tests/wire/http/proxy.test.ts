import { describe, expect, test } from 'bun:test'
import { proxyFor, proxyVariables } from '../../../src/wire/http/proxy.ts'

const through = (environment: Record<string, string>, url: string) => proxyFor(proxyVariables(environment), new URL(url))?.href
const direct = (none: string, url: string) =>
  through({ HTTP_PROXY: 'http://p:1', HTTPS_PROXY: 'http://p:1', NO_PROXY: none }, url) === undefined

describe('the proxy of a URL', () => {
  test('is that of its scheme', () => {
    const environment = { HTTP_PROXY: 'http://plain:3128', HTTPS_PROXY: 'http://secure:3128' }
    expect(through(environment, 'http://example.com/')).toBe('http://plain:3128/')
    expect(through(environment, 'https://example.com/')).toBe('http://secure:3128/')
    expect(through({ HTTP_PROXY: 'http://plain:3128' }, 'https://example.com/')).toBeUndefined()
  })

  test('is written in upper or lower case; upper case wins', () => {
    expect(through({ https_proxy: 'http://lower:1' }, 'https://example.com/')).toBe('http://lower:1/')
    expect(through({ https_proxy: 'http://lower:1', HTTPS_PROXY: 'http://upper:1' }, 'https://example.com/')).toBe('http://upper:1/')
    expect(through({ https_proxy: 'http://lower:1', no_proxy: 'example.com' }, 'https://example.com/')).toBeUndefined()
  })

  test('may lack its scheme', () => {
    expect(through({ HTTPS_PROXY: '10.0.0.9:3128' }, 'https://example.com/')).toBe('http://10.0.0.9:3128/')
    expect(through({ HTTPS_PROXY: 'proxy.lan' }, 'https://example.com/')).toBe('http://proxy.lan/')
    expect(through({ HTTPS_PROXY: 'http://user:word@proxy.lan' }, 'https://example.com/')).toBe('http://user:word@proxy.lan/')
  })

  test('that is no URL is an error without its text, which may hold a password', () => {
    expect(() => through({ HTTPS_PROXY: 'http://u:secret@:x' }, 'https://example.com/')).toThrow(
      'invalid proxy: expected a URL such as http://proxy.example.com:3128',
    )
  })
})

describe('reached directly is', () => {
  // The cases of golang.org/x/net/http/httpproxy: entry, host, whether it is direct.
  const cases: [string, string, boolean][] = [
    ['', 'localhost', true],
    ['', '127.0.0.1', true],
    ['', '127.9.9.9:8080', true],
    ['', '[::1]', true],
    ['', 'example.com', false],
    ['*', 'example.com', true],
    ['example.com', 'example.com', true],
    ['example.com', 'www.example.com', true],
    ['example.com', 'notexample.com', false],
    ['.example.com', 'www.example.com', true],
    ['.example.com', 'example.com', false],
    ['*.example.com', 'www.example.com', true],
    ['*.example.com', 'example.com', false],
    ['EXAMPLE.com', 'www.Example.COM', true],
    ['other.test, example.com ,', 'example.com', true],
    ['example.com:8080', 'example.com:8080', true],
    ['example.com:8080', 'example.com', false],
    ['example.com:443', 'example.com', true],
    ['192.168.1.1', '192.168.1.1', true],
    ['192.168.1.1', '192.168.1.2', false],
    ['192.168.1.1:8443', '192.168.1.1:8443', true],
    ['192.168.1.1:8443', '192.168.1.1:9443', false],
    ['192.168.0.0/16', '192.168.44.2', true],
    ['192.168.0.0/16', '192.169.44.2', false],
    ['192.168.0.0/16', 'example.com', false],
    ['10.0.0.0/8', '[fd00::1]', false],
    ['fd00::/8', '[fd00::1]', true],
    ['fd00::1', '[fd00::1]:8443', true],
    ['[fd00::1]:8443', '[fd00::1]:8443', true],
    ['[fd00::1]:8443', '[fd00::1]', false],
  ]
  test.each(cases)('with NO_PROXY "%s" host %s: %p', (none, host, expected) => {
    expect(direct(none, `https://${host}/`)).toBe(expected)
  })
})
