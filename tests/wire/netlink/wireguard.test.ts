import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { DecodeError } from '../../../src/wire/decode-error.ts'
import { readWireguard, writeWireguard } from '../../../src/wire/netlink/wireguard.ts'

const key = (byte: number) => Buffer.alloc(32, byte).toString('base64')

test('settings round-trip, many peers in several messages', () => {
  const peers = Array.from({ length: 900 }, (_, n) => ({
    publicKey: Buffer.from(`${n}`.padStart(32)).toString('base64'),
    presharedKey: n % 2 ? key(n & 255 || 1) : '',
    endpoint: n % 3 ? `10.0.${n >> 8}.${n & 255}:51820` : '[fd00::1]:7',
    keepalive: 25,
    allowedIPs: [`10.${n >> 8}.${n & 255}.0/24`, 'fd00::/64'],
  }))
  const messages = writeWireguard({ index: 3, privateKey: key(7), listenPort: 51820, firewallMark: 32, peers })
  expect(messages.length).toBeGreaterThan(1)
  const device = readWireguard(messages)
  expect(device).toMatchObject({ index: 3, privateKey: key(7), listenPort: 51820, firewallMark: 32 })
  expect(
    device.peers.map(({ publicKey, presharedKey, endpoint, keepalive, allowedIPs }) => ({
      publicKey,
      presharedKey,
      endpoint,
      keepalive,
      allowedIPs,
    })),
  ).toEqual(peers)
})

test('any bytes decode or are refused', () => {
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ maxLength: 200 }), { maxLength: 3 }), (bodies) => {
      try {
        readWireguard(bodies)
      } catch (error) {
        expect(error).toBeInstanceOf(DecodeError)
      }
    }),
  )
  expect(() => writeWireguard({ index: 1, peers: [{ publicKey: 'x' }] })).toThrow('base64 of 32 bytes')
  expect(() => writeWireguard({ index: 1, peers: [{ publicKey: key(1), endpoint: 'host:1' }] })).toThrow('no endpoint')
})
