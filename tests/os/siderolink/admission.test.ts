import { expect, test } from 'bun:test'
import { parseApiUrl } from '../../../src/os/siderolink/api-url.ts'
import { Membership } from '../../../src/os/siderolink/membership.ts'
import { type Admission, readAdmission } from '../../../src/os/siderolink/provision.ts'
import { DecodeError } from '../../../src/wire/decode-error.ts'
import { newPrivateKey } from '../../../src/wire/wireguard/keys.ts'

test.each([
  ['grpc://10.0.0.1:4000', { address: '10.0.0.1:4000', host: '10.0.0.1', plain: true, joinToken: '', tunnel: false }],
  ['10.0.0.1:4000?jointoken=a', { address: '10.0.0.1:4000', host: '10.0.0.1', plain: true, joinToken: 'a', tunnel: false }],
  [
    'https://omni.example?jointoken=v2%3Aa%2Bb%3D&grpc_tunnel=y',
    { address: 'omni.example:443', host: 'omni.example', plain: false, joinToken: 'v2:a+b=', tunnel: true },
  ],
  ['https://[fd00::1]:8443/?grpc_tunnel=1', { address: '[fd00::1]:8443', host: 'fd00::1', plain: false, joinToken: '', tunnel: false }],
  ['https://a?jointoken=1&jointoken=2&grpc_tunnel=true', { address: 'a:443', host: 'a', plain: false, joinToken: '1', tunnel: true }],
])('URL of a server: %s', (text, expected) => {
  expect(parseApiUrl(text)).toEqual(expected)
})

test.each(['', 'grpc://', 'grpc://host', 'https://[', ':4000'])('URL that leads nowhere: %s', (text) => {
  expect(() => parseApiUrl(text)).toThrow(DecodeError)
})

const reply = (changes: object = {}) => ({
  serverEndpoint: ['c:3', 'b:2', 'a:1'],
  serverPublicKey: newPrivateKey(),
  nodeAddressPrefix: 'fdae:41e4:649b:9303::2/64',
  serverAddress: 'fdae:41e4:649b:9303::1',
  grpcPeerAddrPort: '',
  ...changes,
})

test('the first and the last endpoint are exchanged on the wire', () => {
  expect(readAdmission(reply()).endpoints).toEqual(['a:1', 'b:2', 'c:3'])
  expect(readAdmission(reply({ serverEndpoint: ['a:1'] })).endpoints).toEqual(['a:1'])
  expect(readAdmission(reply({ serverEndpoint: [], grpcPeerAddrPort: '[fdae::4:0:0:0:2]:50889' })).tunnelAddress).toBe(
    '[fdae::4:0:0:0:2]:50889',
  )
})

test.each([
  ['server_endpoint', { serverEndpoint: ['a'] }],
  ['server_endpoint', { serverEndpoint: Array(33).fill('a:1') }],
  ['server_public_key', { serverPublicKey: 'AA==' }],
  ['node_address_prefix', { nodeAddressPrefix: 'fdae::2' }],
  ['node_address_prefix', { nodeAddressPrefix: '10.0.0.1/24' }],
  ['node_address_prefix', { nodeAddressPrefix: 'fdae:41e4:649b:9303::2/0' }],
  ['server_address', { serverAddress: '' }],
  ['grpc_peer_addr_port', { serverEndpoint: [] }],
  ['grpc_peer_addr_port', { grpcPeerAddrPort: 'host:1' }],
])('an answer without a usable %s is refused', (field, changes) => {
  expect(() => readAdmission(reply(changes))).toThrow(`${field} is missing or invalid`)
})

function places(...admissions: Partial<Admission>[]) {
  const membership = new Membership()
  const admitted: Admission[] = []
  const ways = {
    admit: async () => {
      const admission = { ...readAdmission(reply()), ...admissions[Math.min(admitted.length, admissions.length - 1)] }
      admitted.push(admission)
      return admission
    },
    tunnelEndpoint: async () => '127.0.0.1:7',
    lookup: async (host: string) => (host === 'nowhere' ? [] : [{ address: `10.0.0.${host.charCodeAt(0)}` }]),
  }
  const at = (seconds: number, heard = false, of = 'server') => membership.keep(of, { time: seconds * 1000, heard }, ways)
  return { membership, admitted, at }
}

test('a silent endpoint gives way to the next, and after the last the place is requested again', async () => {
  const { membership, admitted, at } = places({ endpoints: ['a:1', 'b:2'] })
  expect((await at(1000)).endpoint).toBe('10.0.0.97:1')
  expect(membership.next(1_010_000)).toBe(20_000)
  expect((await at(1029)).endpoint).toBe('10.0.0.97:1')
  expect((await at(1030)).endpoint).toBe('10.0.0.98:2')
  expect((await at(1060, true)).endpoint).toBe('10.0.0.98:2')
  expect((await at(1090)).endpoint).toBe('10.0.0.97:1')
  expect(admitted).toHaveLength(2)
})

test('another server, machine or token requests a place at once, and so does one that left', async () => {
  const { membership, admitted, at } = places({ endpoints: ['a:1'] })
  await at(1)
  await at(2, false, 'other')
  expect(admitted).toHaveLength(2)
  membership.leave()
  expect(membership.join).toBeUndefined()
  await at(3, false, 'other')
  expect(admitted).toHaveLength(3)
})

test('a tunnel has a local endpoint, and a silent one is requested again', async () => {
  const { admitted, at } = places({ endpoints: ['a:1', 'b:2'], tunnelAddress: '[fd00::4:0:0:0:2]:1' })
  expect((await at(0)).endpoint).toBe('127.0.0.1:7')
  await at(30)
  expect(admitted).toHaveLength(2)
})

test('an endpoint without an address is skipped, also the first', async () => {
  const { admitted, at } = places({ endpoints: ['nowhere:1', 'b:2'] })
  expect((await at(0)).endpoint).toBe('10.0.0.98:2')
  expect(admitted).toHaveLength(1)
})

test('a server whose name has no address is a problem, and the place before stays', async () => {
  const { membership, at } = places({ endpoints: ['a:1', 'nowhere:1'] })
  const before = await at(0)
  await expect(at(30)).rejects.toThrow('no address found for the management server "nowhere"')
  expect(membership.join).toBe(before)
})
