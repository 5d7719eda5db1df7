/**
 * Each use of a socket by an apid fails once, in turn: of its listener, of its connections to machined, and of those to the apid of
 * another node. The call on the way may fail; the next ones succeed, and nothing is left unhandled.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { systemClock } from '../../../src/cosi/clock.ts'
import { freePort } from '../../support/free-port.ts'
import { sample } from '../../support/runs.ts'
import { type Fails, replaceSockets, restoreSockets, SocketFaults } from '../runtime-sockets.ts'
import { clientCertificate, failure, identityOf, type Node, startNode } from './nodes.ts'

const faults = new SocketFaults()
const unhandled: unknown[] = []
const note = (error: unknown) => unhandled.push(error)
const reader = clientCertificate(['os:reader'])
const admin = clientCertificate(['os:admin'])
let port: number
beforeAll(async () => {
  process.on('unhandledRejection', note)
  process.on('uncaughtException', note)
  // The folders of backends have random names; tests before these may have left sockets of their own.
  replaceSockets((use) => {
    const name = use.replace(/\/.*\/machine\.sock/, 'machined').replace(String(port), 'PORT')
    return /(machined|:PORT)$/.test(name) && faults.fails(name)
  })
  port = await freePort()
})
afterAll(() => {
  restoreSockets()
  process.off('unhandledRejection', note)
  process.off('uncaughtException', note)
})

/**
 * Two nodes, and the calls of clients: to the first, through it to the second, to both, and streams; then the same with a renewed
 * certificate of the first. After each fault the calls must come to succeed.
 */
async function calls(fails?: Fails): Promise<Map<string, number>> {
  faults.choose()
  const second = await startNode('127.0.0.3', port)
  // The socket of machined is not opened by apid.
  faults.choose((use, nth) => use !== 'listen machined' && (fails?.(use, nth) ?? false))
  const first = await startNode('127.0.0.2', port)
  try {
    await succeeds(first)
    await first.gateway.become(identityOf('127.0.0.2', 'controlplane'))
    await succeeds(first)
    expect(unhandled.splice(0)).toEqual([])
    return new Map(faults.uses)
  } finally {
    faults.choose()
    await first.close()
    await second.close()
  }
}

/** Makes the calls until all succeed in a row. */
async function succeeds(node: Node): Promise<void> {
  const end = systemClock.deadline(30_000)
  for (;;) {
    const results = await each(node)
    if (results.every((result) => result === 'no failure')) return
    if (end.over) throw new Error(`calls fail: ${JSON.stringify({ results, fired: faults.fired, unhandled })}`)
    await Bun.sleep(50)
  }
}

/** How the calls end, each over a connection of its own. */
async function each(node: Node): Promise<(string | [string, string])[]> {
  const streamed = async (nodes: string[]) => {
    const lines = node.channel(admin).serverStream('machine.MachineService/Logs', { id: 'etcd' }, { metadata: { nodes }, deadline: 5_000 })
    for await (const _ of lines);
  }
  const hostname = (nodes: string[]) =>
    node.channel(reader).unary('machine.MachineService/Hostname', {}, { metadata: nodes.length > 0 ? { nodes } : {}, deadline: 5_000 })
  const both = ['127.0.0.2', '127.0.0.3']
  const results = []
  for (const call of [() => hostname([]), () => hostname(['127.0.0.3']), () => hostname(both), () => streamed(['127.0.0.3'])])
    results.push(await failure(call()))
  return results
}

test('calls to one node, another and both use every kind of socket', async () => {
  const kinds = ['accept', 'connect', 'open', 'read', 'reply', 'request', 'write']
  const expected = ['127.0.0.2:PORT', '127.0.0.3:PORT', 'machined'].flatMap((place) => kinds.map((kind) => `${kind} ${place}`))
  expect([...(await calls()).keys()].sort()).toEqual([...expected, 'listen 127.0.0.2:PORT', 'listen machined'].sort())
})

describe('calls come to succeed', () => {
  test.each(sample([1, 2, 3, 5], { fewest: 1 }))('when use %d of every socket fails', async (which) => {
    await calls((_, nth) => nth === which)
    expect(faults.fired).not.toEqual([])
  })

  test.each(sample(['listen', 'accept', 'request', 'reply', 'connect', 'open', 'read', 'write'], { fewest: 1 }))(
    'when the first %s fails',
    async (kind) => {
      await calls((use, nth) => use.startsWith(`${kind} `) && nth === 1)
      expect(faults.fired).not.toEqual([])
    },
  )
})

// A minute: for a change of how connections are made.
test.if(process.env.ICHOR_FAULTS === 'all')(
  'calls come to succeed when any single use of any socket fails',
  async () => {
    for (const [use, most] of await calls())
      for (let which = 1; which <= most; which++) await calls((name, nth) => name === use && nth === which)
  },
  600_000,
)
