import { afterAll, expect, test } from 'bun:test'
import { createSocket } from 'node:dgram'
import { Store } from '../../../src/cosi/store.ts'
import { silentPath } from '../../../src/os/diagnosis/path.ts'
import { ResolverStatus } from '../../../src/os/network/resources/resolver.ts'
import { RouteStatus } from '../../../src/os/network/resources/route.ts'
import { neighbourState } from '../../../src/wire/netlink/neighbour.ts'

/** A name server that answers each query with itself. */
const server = createSocket('udp4')
server.on('message', (query, from) => {
  const answer = Buffer.from(query)
  answer[2] = (answer[2] ?? 0) | 0x80
  server.send(answer, from.port, from.address)
})
await new Promise<void>((resolve) => server.bind(0, '127.0.0.1', resolve))
afterAll(() => server.close())

/** A network whose neighbours answer the kernel's probes with an outcome; an entry may be known from before. */
function network(outcome: 'reachable' | 'failed', known = false) {
  const requests: object[] = []
  let state: number = known ? neighbourState.stale : 0
  const hardwareAddress = known ? '02:00:00:00:00:01' : undefined
  const opened = {
    link: (name: string) => (name === 'eth0' ? { index: 3 } : undefined),
    neighbours: () => (state === 0 ? [] : [{ link: 3, address: '10.5.0.1', state, hardwareAddress }]),
    putNeighbour(request: object) {
      requests.push(request)
      state = neighbourState[outcome]
    },
    [Symbol.dispose]() {},
  }
  return { requests, net: { openNetwork: () => opened } as never }
}

function routed(gateway: string, outLinkName = 'eth0'): Store {
  const store = new Store()
  const route = { family: 'inet4', dst: '', src: '', gateway, outLinkName, table: 'main', priority: 1024 }
  store.put(RouteStatus, 'default', { ...route, scope: 'global', type: 'unicast', flags: '', protocol: 'static' })
  return store
}

test('a gateway that answers is no cause, and one that is known is probed again', async () => {
  const fresh = network('reachable')
  expect(await silentPath(fresh, routed('10.5.0.1'))).toEqual([])
  expect(fresh.requests).toEqual([{ link: 3, address: '10.5.0.1', flags: 1, state: 0 }])
  const known = network('reachable', true)
  expect(await silentPath(known, routed('10.5.0.1'))).toEqual([])
  expect(known.requests).toEqual([{ link: 3, address: '10.5.0.1', hardwareAddress: '02:00:00:00:00:01', state: neighbourState.probe }])
})

test('a gateway and a name server that do not answer are named', async () => {
  const store = routed('10.5.0.1')
  store.put(ResolverStatus, 'resolvers', { dnsServers: ['127.0.0.1:1', `127.0.0.1:${server.address().port}`], searchDomains: [] })
  const found = await silentPath(network('failed', true), store)
  expect(found.map(({ subject, sentence }) => `${subject}: ${sentence}`)).toEqual([
    'gateway 10.5.0.1 on eth0: it does not answer: check the cable, the VLAN, the address and the route of this machine',
    'name server 127.0.0.1:1: it does not answer: check the name servers of the configuration and the route to them',
  ])
}, 10_000)

test('a route of a link that is gone is not probed', async () => {
  const gone = network('failed')
  expect(await silentPath(gone, routed('10.5.0.1', 'eth7'))).toEqual([])
  expect(gone.requests).toEqual([])
})
