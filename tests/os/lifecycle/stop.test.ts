import { expect, test } from 'bun:test'
import { silent } from '../../../src/cosi/log.ts'
import { Store } from '../../../src/cosi/store.ts'
import type { Machine } from '../../../src/os/area.ts'
import { KubeletSpec } from '../../../src/os/k8s/resources/kubelet.ts'
import { stopWorkload } from '../../../src/os/lifecycle/stop.ts'

/** A machine whose kubelet ends its pods so; what happens is written down. */
function machine(prepare: (signal: AbortSignal) => Promise<string>, kubelet = true) {
  const calls: string[] = []
  const store = new Store()
  store.put(KubeletSpec, 'kubelet', { image: 'kubelet', config: { shutdownGracePeriod: '2m' } })
  const parts = {
    store,
    log: silent,
    supervisor: {
      get: (id: string) => (kubelet ? { id } : undefined),
      stop: async (id: string) => void calls.push(`stop ${id}`),
    },
    logind: {
      async prepareForShutdown(limit: number, signal: AbortSignal) {
        calls.push(`prepare ${limit}`)
        return prepare(signal)
      },
      resume: () => void calls.push('resume'),
    },
  }
  return { calls, machine: parts as unknown as Machine }
}

const run = (here: Machine, signal = new AbortController().signal) =>
  Promise.all(stopWorkload(here, { strict: true }).tasks.map((task) => task.run({ log: silent, signal })))

test.each(['released', 'no lock', 'timeout'])('the kubelet ends its pods within its own time before it is stopped: %s', async (outcome) => {
  const { calls, machine: here } = machine(async () => outcome)
  await run(here)
  expect(calls).toEqual(['prepare 130000', 'stop kubelet', 'resume'])
})

test('a sequence that is preempted while pods end calls the shutdown off', async () => {
  const abort = new AbortController()
  const { calls, machine: here } = machine(async (signal) => {
    abort.abort(new Error('taken over'))
    signal.throwIfAborted()
    return 'released'
  })
  await expect(run(here, abort.signal)).rejects.toThrow('taken over')
  expect(calls).toEqual(['prepare 130000', 'resume'])
})

test('a machine without a kubelet waits for nothing', async () => {
  const { calls, machine: here } = machine(async () => 'released', false)
  await run(here)
  expect(calls).toEqual([])
})
