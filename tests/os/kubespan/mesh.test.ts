import { expect, test } from 'bun:test'
import { meshAddress } from '../../../src/os/kubespan/mesh.ts'
import { meshChains } from '../../../src/os/kubespan/packet-filter.ts'
import { PeerTracker, timeouts } from '../../../src/os/kubespan/peer-tracker.ts'
import { nftScript } from '../../../src/os/network/firewall/nft-script.ts'
import { newPrivateKey, publicKeyOf } from '../../../src/wire/wireguard/keys.ts'

test('the address is derived from cluster id and hardware address', () => {
  // The pair that the field's own tests use.
  expect(meshAddress('8XuV9TZHW08DOk3bVxQjH9ih_TBKjnh-j44tsCLSBzo=', 'ea:71:1b:b2:cc:ee')).toEqual({
    address: 'fd7f:175a:b97c:5602:e871:1bff:feb2:ccee/128',
    subnet: 'fd7f:175a:b97c:5602::/64',
  })
  expect(() => meshAddress('c', '00:11')).toThrow('is not a hardware address of six bytes')
})

test('keys are Curve25519 keys', () => {
  // RFC 7748 6.1
  const alice = Buffer.from('77076d0a7318a57d3c16c17251b26645c6c2f29f5e2e2a1a0c4b0b1d3cd1e6e3', 'hex').toString('base64')
  expect(Buffer.from(publicKeyOf(alice), 'base64')).toHaveLength(32)
  const bob = Buffer.from('5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb', 'hex').toString('base64')
  expect(Buffer.from(publicKeyOf(bob), 'base64').toString('hex')).toBe('de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f')
  expect(newPrivateKey()).not.toBe(newPrivateKey())
  expect(() => publicKeyOf('short')).toThrow(RangeError)
})

test("packets to peers are marked for the link, WireGuard's own packets are not", () => {
  const script = nftScript(meshChains(['10.2.0.0/16', 'fd00::1/128'], 1420))
  const lines = script.text.split('\n').map((line) => line.replace(/ comment ".*"/, '').trim())
  expect(lines).toContain('type filter hook prerouting priority 0; policy accept;')
  expect(lines).toContain('type route hook output priority 0; policy accept;')
  expect(lines.filter((line) => line === 'meta mark and 0x60 == 0x20 accept')).toHaveLength(2)
  expect(lines).toContain('ip daddr { 10.2.0.0/16 } meta l4proto 6 tcp flags syn tcp option maxseg size set 1380')
  expect(lines).toContain('ip6 daddr { fd00::1/128 } meta l4proto 6 tcp flags syn tcp option maxseg size set 1360')
  expect(lines).toContain('ip daddr { 10.2.0.0/16 } meta mark set meta mark and 0xffffff9f xor 0x40 accept')
  expect(nftScript(meshChains([], 1420)).text).not.toContain('0x40')
})

const peer = (more: object) => ({
  publicKey: 'k',
  presharedKey: '',
  endpoint: '',
  keepalive: 25,
  allowedIPs: [],
  lastHandshake: 0,
  receivedBytes: 0,
  sentBytes: 0,
  ...more,
})

test('a peer never heard of is tried at each endpoint quickly, then slowly', () => {
  const tracker = new PeerTracker()
  const endpoints = ['a:1', 'b:1', 'c:1']
  const tried = [0, 1, 2, 3].map((step) => tracker.update('k', endpoints, peer({}), step * timeouts.first).endpoint)
  expect(tried).toEqual(['a:1', 'b:1', 'c:1', 'a:1'])
  expect(tracker.update('k', endpoints, peer({}), timeouts.first * 3 + 1).state).toBe('unknown')
  expect(tracker.next(timeouts.first * 3 + 1)).toBe(timeouts.first - 1)
  const late = timeouts.eager + 1
  expect(tracker.update('k', endpoints, peer({}), late)).toMatchObject({ state: 'down', endpoint: 'b:1' })
  expect(tracker.update('k', endpoints, peer({}), late + timeouts.first).endpoint).toBe('b:1')
  expect(tracker.update('k', endpoints, peer({}), late + timeouts.lost).endpoint).toBe('c:1')
  // A new endpoint may be the right one.
  expect(tracker.update('k', [...endpoints, 'd:1'], peer({}), late + timeouts.lost + timeouts.first).endpoint).toBe('d:1')
})

test('a responding peer is followed when it roams, and searched when it falls silent', () => {
  const tracker = new PeerTracker()
  const endpoints = ['a:1', 'b:1']
  let now = 1_000_000
  tracker.update('k', endpoints, undefined, now)
  const up = tracker.update('k', endpoints, peer({ endpoint: 'b:1', lastHandshake: 1000, receivedBytes: 90 }), now)
  expect(up).toMatchObject({ state: 'up', endpoint: 'b:1', lastHandshake: 1_000_000, receiveBytes: 90 })
  expect(tracker.next(now)).toBe(timeouts.silent + 1)
  now += 60_000
  const roamed = { endpoint: 'x:9', lastHandshake: 1000, receivedBytes: 120 }
  expect(tracker.update('k', endpoints, peer(roamed), now)).toMatchObject({ state: 'up', endpoint: 'x:9', lastEndpointChange: now })
  now += timeouts.silent
  expect(tracker.update('k', endpoints, peer(roamed), now).endpoint).toBe('x:9')
  now += 1
  expect(tracker.update('k', endpoints, peer(roamed), now)).toMatchObject({ state: 'up', endpoint: 'a:1' })
  expect(tracker.next(now)).toBe(timeouts.lost)
  // A recreated peer has no handshake in the kernel, but has one here.
  now += timeouts.handshake
  expect(tracker.update('k', endpoints, peer({ endpoint: 'a:1' }), now)).toMatchObject({ state: 'down', endpoint: 'b:1' })
  expect(tracker.update('k', endpoints, peer({ endpoint: 'b:1', lastHandshake: now / 1000, receivedBytes: 7 }), now).state).toBe('up')
})

test('a peer with a new endpoint that falls silent has moved and is searched at once', () => {
  const tracker = new PeerTracker()
  const there = peer({ endpoint: 'a:1', lastHandshake: 1000, receivedBytes: 90 })
  let now = 1_000_000
  tracker.update('k', ['a:1'], there, now)
  now += 5
  expect(tracker.update('k', ['a:1', 'b:1'], there, now).endpoint).toBe('a:1')
  expect(tracker.next(now)).toBe(timeouts.moved - 5 + 1)
  now += timeouts.moved
  expect(tracker.update('k', ['a:1', 'b:1'], there, now).endpoint).toBe('b:1')
  expect(tracker.next(now)).toBe(timeouts.first)
  const moved = peer({ endpoint: 'b:1', lastHandshake: 1000, receivedBytes: 150 })
  expect(tracker.update('k', ['a:1', 'b:1'], moved, now + timeouts.first)).toMatchObject({ endpoint: 'b:1', state: 'up' })
  expect(tracker.next(now + timeouts.first)).toBe(timeouts.silent + 1)
})

test('a peer without endpoints is awaited', () => {
  const tracker = new PeerTracker()
  expect(tracker.update('k', [], peer({}), 0)).toMatchObject({ state: 'unknown', endpoint: '' })
  expect(tracker.next(5)).toBeUndefined()
  tracker.retain(new Set())
  expect(tracker.update('k', ['a:1'], peer({}), 9).endpoint).toBe('a:1')
})
