/** Two devices on a network of this test, with a clock that it moves. */
import { describe, expect, test } from 'bun:test'
import { chacha20poly1305 } from '@noble/ciphers/chacha.js'
import { configure, report } from '../../../src/wire/wireguard/configure.ts'
import { Device, headroom, tailroom } from '../../../src/wire/wireguard/device.ts'
import { newPrivateKey, publicKeyOf } from '../../../src/wire/wireguard/keys.ts'
import type { Endpoint } from '../../../src/wire/wireguard/peer.ts'
import type { TransportCipher } from '../../../src/wire/wireguard/session.ts'
import { formatEndpoint, parseEndpoint } from '../../../src/wire/wireguard/socket-address.ts'

/** The cipher of sessions, by the library that the handshake uses. */
function cipher(key: Uint8Array): TransportCipher {
  const nonceOf = (counter: number) => {
    const nonce = new Uint8Array(12)
    new DataView(nonce.buffer).setBigUint64(4, BigInt(counter), true)
    return nonce
  }
  return {
    seal: (counter, buffer, at, length) => buffer.set(chacha20poly1305(key, nonceOf(counter)).encrypt(buffer.slice(at, at + length)), at),
    open(counter, buffer, at, length) {
      try {
        buffer.set(chacha20poly1305(key, nonceOf(counter)).decrypt(buffer.slice(at, at + length)), at)
        return true
      } catch {
        return false
      }
    },
    close() {},
  }
}

interface Node {
  device: Device
  endpoint: Endpoint
  key: string
  sent: { bytes: Uint8Array; to: Endpoint }[]
  delivered: Uint8Array[]
}

const at = (text: string): Endpoint => parseEndpoint(text) ?? expect.unreachable()

function network() {
  const clock = { now: 1_000_000 }
  let index = 1
  const node = (address: string): Node => {
    const key = newPrivateKey()
    const sent: Node['sent'] = []
    const delivered: Uint8Array[] = []
    const device = new Device(
      {
        send: (buffer, from, length, to) => sent.push({ bytes: buffer.slice(from, from + length), to }),
        deliver: (buffer, from, length) => delivered.push(buffer.slice(from, from + length)),
      },
      { now: () => clock.now, wallClock: () => 1.7e12 + clock.now, randomIndex: () => index++, cipher },
    )
    configure(device, { privateKey: key, peers: [] })
    return { device, endpoint: at(address), key, sent, delivered }
  }
  const one = node('192.0.2.1:51820')
  const other = node('192.0.2.2:51820')
  const add = (to: Node, peer: Node, ip: string, settings = {}) =>
    configure(to.device, {
      peers: [{ publicKey: publicKeyOf(peer.key), endpoint: formatEndpoint(peer.endpoint), addedIPs: [ip], ...settings }],
    })
  add(one, other, '10.0.0.2/32')
  add(other, one, '10.0.0.1/32')
  /** Carries what was sent to and fro until nothing is; returns the types of messages. */
  const carry = (): number[] => {
    const types: number[] = []
    for (let moved = true; moved; ) {
      moved = false
      for (const [from, to] of [
        [one, other],
        [other, one],
      ] as const)
        for (const { bytes } of from.sent.splice(0)) {
          moved = true
          types.push(bytes[0] ?? 0)
          to.device.datagram(bytes, from.endpoint)
        }
    }
    return types
  }
  const pass = (milliseconds: number) => {
    clock.now += milliseconds
    one.device.tick()
    other.device.tick()
  }
  return { clock, one, other, carry, pass, add, node }
}

/** An IPv4 packet. */
function packet(from: string, to: string, content = 'abc'): Uint8Array {
  const length = 20 + content.length
  const header = [0x45, 0, length >> 8, length & 255, ...Array(8).fill(0), ...from.split('.').map(Number), ...to.split('.').map(Number)]
  return Uint8Array.from([...header, ...Buffer.from(content)])
}

function send({ device }: Node, bytes: Uint8Array): boolean {
  const buffer = new Uint8Array(headroom + bytes.length + tailroom)
  buffer.set(bytes, headroom)
  return device.packet(buffer, headroom, bytes.length)
}

const ping = packet('10.0.0.1', '10.0.0.2')
const pong = packet('10.0.0.2', '10.0.0.1', 'defg')
const stateOf = (node: Node) => report(node.device, { privateKey: node.key, listenPort: 0, firewallMark: 0 }).peers[0]

describe('a handshake', () => {
  test('is started by a packet, which arrives without its padding', () => {
    const { one, other, carry } = network()
    expect(send(one, ping)).toBe(true)
    expect(carry()).toEqual([1, 2, 4])
    expect(other.delivered).toEqual([ping])
    send(other, pong)
    expect(carry()).toEqual([4])
    expect(one.delivered).toEqual([pong])
    expect(stateOf(one)?.lastHandshake).toBeGreaterThan(0)
  })

  test('keeps the packet that started it, whatever becomes of its buffer', () => {
    const { one, other, carry } = network()
    const buffer = Buffer.alloc(headroom + ping.length + tailroom)
    buffer.set(ping, headroom)
    one.device.packet(buffer, headroom, ping.length)
    buffer.fill(0)
    carry()
    expect(other.delivered).toEqual([ping])
  })

  test('needs the same preshared key on both sides', () => {
    const { one, other, carry, add } = network()
    add(one, other, '10.0.0.2/32', { presharedKey: newPrivateKey() })
    send(one, ping)
    expect(carry()).toEqual([1, 2])
    expect(other.delivered).toEqual([])
  })

  test('is not answered for a stranger, a wrong mac, or a message that is repeated', () => {
    const { one, other, carry, node } = network()
    const stranger = node('192.0.2.9:1')
    configure(stranger.device, { peers: [{ publicKey: publicKeyOf(other.key), endpoint: '192.0.2.2:51820', addedIPs: ['10.0.0.2/32'] }] })
    send(stranger, ping)
    for (const { bytes } of stranger.sent) other.device.datagram(bytes, stranger.endpoint)
    send(one, ping)
    const [first] = one.sent
    if (!first) return expect.unreachable()
    const changed = first.bytes.slice()
    changed[60] = (changed[60] ?? 0) ^ 1
    other.device.datagram(changed, one.endpoint)
    expect(other.sent).toEqual([])
    carry()
    other.device.datagram(first.bytes, one.endpoint)
    expect(other.sent).toEqual([])
  })

  test('is tried again every 5 seconds for 90 seconds, then given up with what waited', () => {
    const { one, pass } = network()
    send(one, ping)
    for (let second = 0; second < 200; second++) pass(1000)
    expect(one.sent.length).toBeGreaterThanOrEqual(15)
    expect(one.sent.length).toBeLessThanOrEqual(19)
    const count = one.sent.length
    for (let second = 0; second < 100; second++) pass(1000)
    expect(one.sent).toHaveLength(count)
  })

  test('is repeated by the initiator after 120 seconds', () => {
    const { one, carry, pass } = network()
    send(one, ping)
    carry()
    for (let second = 0; second < 121; second++) {
      pass(1000)
      carry()
    }
    send(one, ping)
    expect(carry()).toEqual([4, 1, 2, 4])
  })

  test('under load needs a cookie, which proves the address', () => {
    const { one, other, carry, pass, node } = network()
    const stranger = node('192.0.2.9:1')
    configure(stranger.device, { peers: [{ publicKey: publicKeyOf(other.key), endpoint: '192.0.2.2:51820', addedIPs: ['10.0.0.2/32'] }] })
    send(stranger, ping)
    const flood = stranger.sent[0]?.bytes ?? expect.unreachable()
    const load = () => {
      for (let copy = 0; copy <= 100; copy++) other.device.datagram(flood, stranger.endpoint)
      other.sent.length = 0
    }
    load()
    send(one, ping)
    expect(carry()).toEqual([1, 3])
    pass(5400)
    load()
    expect(carry()).toEqual([1, 2, 4])
    expect(other.delivered).toHaveLength(1)
  })
})

describe('a session', () => {
  test('takes each message once, whatever their order', () => {
    const { one, other, carry } = network()
    send(one, ping)
    carry()
    for (let count = 0; count < 3; count++) send(one, ping)
    const messages = one.sent.splice(0).map(({ bytes }) => bytes)
    for (const bytes of [messages[2], messages[0], messages[1], messages[0]])
      other.device.datagram((bytes as Uint8Array).slice(), one.endpoint)
    expect(other.delivered).toHaveLength(4)
  })

  test('goes on when the same settings are applied again', () => {
    const { one, other, carry, add } = network()
    send(one, ping)
    carry()
    configure(other.device, { privateKey: other.key, peers: [] })
    add(other, one, '10.0.0.1/32', { replaceIPs: true })
    send(one, ping)
    expect(carry()).toEqual([4])
    expect(other.delivered).toHaveLength(2)
  })

  test('pads packets, but not above the MTU', () => {
    const { one, other, carry } = network()
    send(one, ping)
    carry()
    const lengthOf = (length: number) => {
      send(one, packet('10.0.0.1', '10.0.0.2', 'x'.repeat(length - 20)))
      return (one.sent.at(-1)?.bytes.length ?? 0) - headroom - 16
    }
    expect([50, 96, 1420].map(lengthOf)).toEqual([64, 96, 1424])
    one.device.mtu = 1420
    expect([50, 96, 1415, 1420, 1421].map(lengthOf)).toEqual([64, 96, 1420, 1420, 1421])
    carry()
    expect(other.delivered.map(({ length }) => length)).toEqual([23, 50, 96, 1420, 50, 96, 1415, 1420, 1421])
  })

  test('ends after 180 seconds', () => {
    const { one, other, carry, clock } = network()
    send(one, ping)
    carry()
    send(one, ping)
    clock.now += 181_000
    carry()
    expect(other.delivered).toHaveLength(1)
  })

  test('refuses packets from addresses that the peer does not have', () => {
    const { one, other, carry } = network()
    send(one, packet('10.0.0.9', '10.0.0.2'))
    carry()
    expect(other.delivered).toEqual([])
    expect(send(one, packet('10.0.0.1', '10.0.0.77'))).toBe(false)
  })

  test('follows a peer to another address', () => {
    const { one, other, carry } = network()
    send(one, ping)
    carry()
    one.endpoint = at('198.51.100.4:7')
    send(one, ping)
    carry()
    expect(stateOf(other)?.endpoint).toBe('198.51.100.4:7')
    send(other, pong)
    expect(other.sent.map(({ to }) => formatEndpoint(to))).toEqual(['198.51.100.4:7'])
  })

  test('without a session is tried at another endpoint at once', () => {
    const { one, other, add } = network()
    add(one, other, '10.0.0.2/32', { keepalive: 25 })
    add(one, other, '10.0.0.2/32', { keepalive: 25, endpoint: '198.51.100.4:7' })
    add(one, other, '10.0.0.2/32', { keepalive: 25, endpoint: '198.51.100.4:7' })
    expect(one.sent.map(({ bytes, to }) => [bytes[0], formatEndpoint(to)])).toEqual([
      [1, '192.0.2.2:51820'],
      [1, '198.51.100.4:7'],
    ])
  })

  test('is not moved by who does not know of its last handshake', () => {
    const { one, other, carry, add } = network()
    add(one, other, '10.0.0.2/32', { keepalive: 25 })
    carry()
    add(one, other, '10.0.0.2/32', { keepalive: 24, endpoint: '198.51.100.4:7', ifHandshake: 0 })
    expect(stateOf(one)).toMatchObject({ endpoint: '192.0.2.2:51820', keepalive: 24 })
    add(one, other, '10.0.0.2/32', { endpoint: '198.51.100.4:7', ifHandshake: stateOf(one)?.lastHandshake })
    expect(stateOf(one)?.endpoint).toBe('198.51.100.4:7')
  })

  test('answers data with a keepalive after 10 seconds of silence', () => {
    const { one, other, carry, pass } = network()
    send(one, ping)
    carry()
    send(one, ping)
    carry()
    pass(9_000)
    expect(other.sent).toEqual([])
    pass(1_100)
    expect(other.sent.map(({ bytes }) => [bytes[0], bytes.length])).toEqual([[4, 32]])
  })

  test('is kept by persistent keepalives', () => {
    const { one, other, carry, pass, add } = network()
    add(one, other, '10.0.0.2/32', { keepalive: 25 })
    expect(carry()).toEqual([1, 2, 4])
    pass(25_100)
    expect(carry()).toEqual([4])
  })
})

test('datagrams of any content are ignored', () => {
  const { one } = network()
  for (const length of [0, 1, 16, 31, 32, 64, 92, 148, 1500])
    for (let type = 0; type < 6; type++) {
      const bytes = crypto.getRandomValues(new Uint8Array(length))
      bytes.set([type, 0, 0, 0].slice(0, length))
      one.device.datagram(bytes, at('192.0.2.7:7'))
    }
  expect(one.sent).toEqual([])
})
