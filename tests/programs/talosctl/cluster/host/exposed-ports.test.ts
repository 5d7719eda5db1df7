import { expect, test } from 'bun:test'
import { parseExposedPorts } from '../../../../../src/programs/talosctl/cluster/host/exposed-ports.ts'

test('ports are tcp by default, and a range stands for each of its ports', () => {
  expect(parseExposedPorts('8080:80, 53:30053/udp,9000-9001:30000-30001/tcp')).toEqual([
    { hostPort: 8080, nodePort: 80, protocol: 'tcp' },
    { hostPort: 53, nodePort: 30053, protocol: 'udp' },
    { hostPort: 9000, nodePort: 30000, protocol: 'tcp' },
    { hostPort: 9001, nodePort: 30001, protocol: 'tcp' },
  ])
  expect(parseExposedPorts('')).toEqual([])
})

test('one port of the host may serve both protocols', () => {
  expect(parseExposedPorts('53:53/tcp,53:53/udp')).toHaveLength(2)
})

test('an address may stand before a port where an engine publishes it', () => {
  expect(parseExposedPorts('127.0.0.1:80:80,192.0.2.1:80:81', { addresses: true })).toEqual([
    { hostPort: 80, nodePort: 80, protocol: 'tcp', address: '127.0.0.1' },
    { hostPort: 80, nodePort: 81, protocol: 'tcp', address: '192.0.2.1' },
  ])
  expect(() => parseExposedPorts('127.0.0.1:80:80')).toThrow('all ports are exposed on one address of this host: write it as --host-ip')
  expect(() => parseExposedPorts('127.0.0.300:80:80', { addresses: true })).toThrow('write hostPort:nodePort/protocol')
})

test.each([
  ['8080', 'exposed port "8080": write hostPort:nodePort/protocol, such as 8080:30080/tcp'],
  ['80:80/sctp', 'exposed port "80:80/sctp": write hostPort:nodePort/protocol, such as 8080:30080/tcp'],
  ['0:80', 'exposed port "0:80": ports go from 1 to 65535, ranges upwards'],
  ['80:70000', 'exposed port "80:70000": ports go from 1 to 65535, ranges upwards'],
  ['9-8:9-8', 'exposed port "9-8:9-8": ports go from 1 to 65535, ranges upwards'],
  ['1-3:1-2', 'exposed port "1-3:1-2": the two ranges differ in length'],
  ['80:80,80:81', 'exposed port 80/tcp is given twice: use each port of the host once'],
])('%s is refused with the way out', (text, message) => {
  expect(() => parseExposedPorts(text)).toThrow(message)
})
