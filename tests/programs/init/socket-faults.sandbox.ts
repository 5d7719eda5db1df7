/**
 * Each use of a socket by init fails once, in turn, while a node starts, while clients call its API and while its configuration
 * changes: it cannot be bound, a connection is refused, or reset when it is opened, by what is written or in the middle of an answer.
 * Init lives: nothing is unhandled, the node comes to what it is without the fault, its services are healthy, and its API answers.
 */
import { beforeAll, describe, expect, test } from 'bun:test'
import { systemClock } from '../../../src/cosi/clock.ts'
import { MachineConfig } from '../../../src/os/config/resources/machine-config.ts'
import type { Channel } from '../../../src/rpc/client/channel.ts'
import { sample } from '../../support/runs.ts'
import {
  becomes,
  changedConfiguration,
  type Fails,
  problems,
  type ServingNode,
  settledShape,
  startServingNode,
  unexpected,
  useSandbox,
} from './sandbox-node.ts'

useSandbox()
const never: Fails = () => false
const healthy = ['apid', 'containerd', 'cri', 'machined', 'registryd', 'trustd']
/** What a node is after its start, and after a change of its configuration. */
const shapes: { started: string[]; changed: string[] } = { started: [], changed: [] }
/** How often each socket is used until a node has started, and from then on. */
let uses: { start: Map<string, number>; steady: Map<string, number> }

beforeAll(async () => {
  const here = await startServingNode(never)
  try {
    await serves(here)
    shapes.started = await settledShape(here)
    const start = new Map(here.sockets.faults.uses)
    here.sockets.faults.choose(never)
    change(here)
    shapes.changed = await settledShape(here)
    await serves(here)
    uses = { start, steady: new Map(here.sockets.faults.uses) }
  } finally {
    await here.stop()
  }
})

function change({ machine: { store } }: ServingNode): void {
  store.put(MachineConfig, 'v1alpha1', changedConfiguration)
}

/** What a client does: a call, a watch of resources until it has all, and a log. */
async function clientCalls(channel: Channel): Promise<void> {
  const { messages } = await channel.unary('machine.MachineService/Version', {}, { deadline: 5_000 })
  expect(messages).toHaveLength(1)
  const request = { namespace: 'config', type: 'MachineConfigs.config.talos.dev', options: { bootstrapContents: true }, apiVersion: 1 }
  let events = 0
  for await (const { event } of channel.serverStream('cosi.resource.State/Watch', request, { deadline: 5_000 })) {
    events += event.length
    if (events >= 2) break
  }
  for await (const _ of channel.serverStream('machine.MachineService/Logs', { id: 'machined', tailLines: 5 }, { deadline: 5_000 }));
}

/** Waits until the node's services are healthy and a client's calls succeed, over one connection and over new ones. */
async function serves(here: ServingNode): Promise<void> {
  const end = systemClock.deadline(45_000)
  const kept = here.sockets.client()
  try {
    for (let succeeded = 0; succeeded < 2; ) {
      const missing = healthy.filter((id) => !here.machine.supervisor.isUp(id))
      const fresh = here.sockets.client()
      try {
        await clientCalls(kept)
        await clientCalls(fresh)
        if (missing.length === 0) succeeded++
      } catch (error) {
        if (end.over) throw new Error(`calls fail: ${error}: ${problems(here).join('\n')}`, { cause: error })
      } finally {
        fresh.close()
      }
      if (end.over) throw new Error(`services are not healthy: ${missing}: ${problems(here).join('\n')}`)
      await Bun.sleep(10)
    }
  } finally {
    kept.close()
  }
}

/** Waits until a fault has met a socket that is used regularly, and the node has recovered from it; not for ever. */
async function fires(here: ServingNode): Promise<void> {
  const end = systemClock.deadline(4_000)
  if (here.sockets.faults.fired.length > 0) return
  while (here.sockets.faults.fired.length === 0 && !end.over) await Bun.sleep(20)
  await serves(here)
}

/** Starts a node, calls its API and changes its configuration, with its sockets failing on the way. Gives what failed. */
async function lives({ start = never, steady = never }: { start?: Fails; steady?: Fails }): Promise<string[]> {
  const here = await startServingNode(start)
  const { faults } = here.sockets
  try {
    await becomes(here, shapes.started)
    await serves(here)
    if (start !== never) await fires(here)
    const { fired } = faults
    faults.choose(steady)
    change(here)
    await serves(here)
    if (steady !== never) await fires(here)
    await becomes(here, shapes.changed)
    expect({ unexpected: unexpected.splice(0), ends: here.ends }).toEqual({ unexpected: [], ends: [] })
    return [...fired, ...faults.fired]
  } finally {
    await here.stop()
  }
}

test('a node uses the sockets of its API, of its containerds, of services that it checks, and of its own servers', () => {
  const names = [...uses.start.keys(), ...uses.steady.keys()]
  const machined = '/system/run/machined/machine.sock'
  for (const kind of ['listen', 'accept', 'request', 'reply', 'connect', 'open', 'read', 'write'])
    expect(names).toContain(`${kind} ${machined}`)
  for (const path of ['/system/run/containerd/containerd.sock', '/run/containerd/containerd.sock'])
    for (const kind of ['connect', 'open', 'read', 'write']) expect(names).toContain(`${kind} ${path}`)
  for (const name of ['connect 127.0.0.1:50000', 'serve 127.0.0.1:3172', 'fetch http://127.0.0.1:3172/healthz', 'udp 127.0.0.53:53'])
    expect(names).toContain(name)
})

describe('init lives and the node comes up', () => {
  test.each(sample([1, 2, 3], { fewest: 1 }))('when use %d of every socket fails at its start', async (which) => {
    expect(await lives({ start: (_, nth) => nth === which })).not.toEqual([])
  })

  test.each(sample([1, 2, 5], { fewest: 1 }))('when use %d of every socket fails later', async (which) => {
    expect(await lives({ steady: (_, nth) => nth === which })).not.toEqual([])
  })
})

// Some minutes: for a change of what uses a socket. Later uses of one that is used regularly, such as a health check, are alike.
test.if(process.env.ICHOR_FAULTS === 'all')(
  'when any single use of any socket fails',
  async () => {
    const most = 12
    const wrong: string[] = []
    const unfired: string[] = []
    let runs = 0
    for (const phase of ['start', 'steady'] as const)
      for (const [use, count] of uses[phase])
        for (let which = 1; which <= Math.min(count, most); which++) {
          const what = `use ${which} of ${use}, ${phase}`
          runs++
          try {
            const fired = await lives({ [phase]: (name: string, nth: number) => name === use && nth === which })
            if (fired.length === 0) unfired.push(what)
          } catch (error) {
            unexpected.splice(0)
            wrong.push(`${what}: ${(error as Error).message}`)
          }
        }
    expect(wrong).toEqual([])
    // How often a socket is used differs a little from start to start.
    expect(unfired.length, unfired.join('\n')).toBeLessThan(runs / 10)
  },
  7_200_000,
)
