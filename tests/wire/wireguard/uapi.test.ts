import { expect, test } from 'bun:test'
import { DecodeError } from '../../../src/wire/decode-error.ts'
import { AllowedIps } from '../../../src/wire/wireguard/allowed-ips.ts'
import { newPrivateKey, publicKeyOf } from '../../../src/wire/wireguard/keys.ts'
import { ReplayWindow } from '../../../src/wire/wireguard/replay.ts'
import { formatEndpoint, parseEndpoint } from '../../../src/wire/wireguard/socket-address.ts'
import { readGet, readSet, writeGet, writeSet } from '../../../src/wire/wireguard/uapi.ts'

const key = newPrivateKey()
const peer = {
  publicKey: publicKeyOf(newPrivateKey()),
  presharedKey: newPrivateKey(),
  endpoint: '[fd00::1]:51820',
  keepalive: 25,
  allowedIPs: ['10.0.0.0/8', 'fd00::/64'],
}
const lines = (text: string) => text.trimEnd().split('\n').slice(1)

test('a change is read as it was written', () => {
  const { allowedIPs, ...rest } = peer
  expect(readSet(lines(writeSet({ privateKey: key, listenPort: 51820, firewallMark: 0x20, peers: [peer] })))).toEqual({
    privateKey: key,
    listenPort: 51820,
    firewallMark: 0x20,
    peers: [{ ...rest, replaceIPs: true, addedIPs: allowedIPs }],
  })
  const moved = { publicKey: peer.publicKey, endpoint: '192.0.2.1:1', ifHandshake: 1_700_000_000.121 }
  expect(readSet(lines(writeSet({ peers: [moved] })))).toEqual({ peers: [{ ...moved, addedIPs: [] }] })
  expect(readSet(lines(writeSet({ peers: [{ publicKey: peer.publicKey, remove: true, presharedKey: '' }] })))).toEqual({
    peers: [{ publicKey: peer.publicKey, remove: true, presharedKey: '', addedIPs: [] }],
  })
})

test('a report is read as it was written', () => {
  const state = { ...peer, lastHandshake: 1_700_000_000.121, receivedBytes: 1, sentBytes: 2 }
  const device = { privateKey: key, listenPort: 1, firewallMark: 2, peers: [state, { ...state, presharedKey: '', endpoint: '' }] }
  const text = writeGet(device)
  expect(text.endsWith('\nerrno=0\n\n')).toBe(true)
  expect(readGet(text, publicKeyOf)).toEqual({ ...device, publicKey: publicKeyOf(key) })
})

test.each([
  ['private_key=abc', 'private_key: expected 64 hexadecimal digits'],
  ['listen_port=65536', 'listen_port: expected a number of at most 65535'],
  ['replace_peers=no', 'replace_peers: expected "true"'],
  ['endpoint=1.1.1.1:1', 'endpoint: unknown'],
  [`public_key=${'0'.repeat(64)}\nendpoint=host:1`, 'endpoint: expected an IP address and a port'],
  [`public_key=${'0'.repeat(64)}\nallowed_ip=10.0.0.0`, 'allowed_ip: expected a network'],
  [`public_key=${'0'.repeat(64)}\nprotocol_version=2`, 'protocol_version: unknown'],
])('%s is refused', (text, reason) => {
  expect(() => readSet(text.split('\n'))).toThrow(DecodeError)
  expect(() => readSet(text.split('\n'))).toThrow(reason)
})

test('the longest prefix has an address', () => {
  const table = new AllowedIps<string>()
  const at = (address: number[], length: 4 | 16) => table.find(Uint8Array.from(address), 0, length)
  table.set(Uint8Array.of(0, 0, 0, 0), 0, 'any')
  table.set(Uint8Array.of(10, 0, 0, 0), 8, 'ten')
  table.set(Uint8Array.of(10, 1, 2, 3), 32, 'one')
  expect([at([10, 1, 2, 3], 4), at([10, 1, 2, 4], 4), at([11, 0, 0, 0], 4)]).toEqual(['one', 'ten', 'any'])
  expect(at(Array(16).fill(0), 16)).toBeUndefined()
})

test('a window takes each counter once, and none that is too old', () => {
  const window = new ReplayWindow()
  const accepted = [0, 1, 1, 9, 8, 8, 9, 100_000, 99_999, 91_840, 91_839, 10, 100_000, 2 ** 52, 100_001]
  expect(accepted.filter((counter) => window.accept(counter))).toEqual([0, 1, 9, 8, 100_000, 99_999, 91_840, 2 ** 52])
})

test('endpoints are socket addresses', () => {
  for (const text of ['192.0.2.1:51820', '[2001:db8::7]:1']) expect(formatEndpoint(parseEndpoint(text) ?? expect.unreachable())).toBe(text)
  expect(parseEndpoint('host:1')).toBeUndefined()
})
