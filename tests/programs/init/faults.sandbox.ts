/**
 * Every call to the kernel fails once, in turn, while a container node starts and while it runs, and init lives: nothing is
 * unhandled, it does not end, what failed is logged, and the node comes to what it is without the fault.
 */
import { beforeAll, describe, expect, test } from 'bun:test'
import { MachineConfig } from '../../../src/os/config/resources/machine-config.ts'
import { pause } from '../../../src/timing/pause.ts'
import { sample } from '../../support/runs.ts'
import { becomes, changedConfiguration, never, type SandboxNode, settledShape, startNode, unexpected, useSandbox } from './sandbox-node.ts'

useSandbox()

/** What a node that nothing fails on is after its start, and after a change of its configuration. */
const shapes: { started: string[]; changed: string[] } = { started: [], changed: [] }
let uses: Map<string, number>
beforeAll(async () => {
  const here = await startNode()
  shapes.started = await settledShape(here)
  uses = new Map(here.calls)
  change(here)
  shapes.changed = await settledShape(here)
  await here.stop()
})

function change({ machine: { store } }: SandboxNode): void {
  store.put(MachineConfig, 'v1alpha1', changedConfiguration)
}

/** Starts a node and changes it, with its calls failing on the way; counts start again with the change. */
async function lives(fails: (call: string, use: number) => boolean): Promise<SandboxNode> {
  const here = await startNode(fails)
  await becomes(here, shapes.started)
  here.calls.clear()
  change(here)
  await becomes(here, shapes.changed)
  await pause(0, never)
  expect(unexpected.splice(0)).toEqual([])
  expect(here.ends).toEqual([])
  await here.stop()
  return here
}

test('a node of its own that nothing fails on has everything a control plane begins with', () => {
  expect(shapes.started).toContain('sequence boot')
  expect(shapes.started.length).toBeGreaterThan(300)
  expect(shapes.changed).not.toEqual(shapes.started)
  expect([...uses.keys()]).toContain('files.writeAtomic')
})

describe('init lives and the node comes up', () => {
  test.each(sample([1, 2, 3, 5, 8], { fewest: 1 }))('when use %d of every call fails', async (which) => {
    const { fired, entries } = await lives((_, use) => use === which)
    expect(fired.length).toBeGreaterThan(0)
    expect(entries.filter(({ level }) => level === 'warn' || level === 'error').length).toBeGreaterThan(0)
  })
})

// Some minutes: for a change of what a start is made of.
test.if(process.env.ICHOR_FAULTS === 'all')(
  'when any single use of any call fails',
  async () => {
    for (const [call, most] of uses) for (let which = 1; which <= most; which++) await lives((name, use) => name === call && use === which)
  },
  900_000,
)
