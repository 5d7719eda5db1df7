import { expect, test } from 'bun:test'
import { kubeletRun } from '../../../../src/os/k8s/component/kubelet-run.ts'
import { LogRing } from '../../../../src/supervise/log-ring.ts'
import type { State, Step } from '../../../../src/supervise/state.ts'

const time = new Date(0)
const health = { unknown: true, healthy: false, lastMessage: '', lastChange: time }
const event = (state: State, step: Step, message = '') => ({ id: 'kubelet', state, step, message, time, health })

function services(...events: ReturnType<typeof event>[]) {
  const log = new LogRing()
  log.line('error: of the kubelet before')
  const logFrom = log.end
  log.line('E0101 00:00:00 invalid configuration: maxPods')
  const snapshot = { id: 'kubelet', state: events.at(-1)!.state, health, starts: 1, steady: false, logFrom, events }
  return { get: () => snapshot, logs: { get: () => log } }
}

test('a kubelet that exited is reported with the last output of that run', async () => {
  const run = await kubeletRun(
    services(event('Preparing', 'prepare'), event('Running', 'run'), event('Waiting', 'retry', 'exited with code 1')),
    undefined,
  )
  expect(run).toEqual({ ready: false, failures: 1, error: 'E0101 00:00:00 invalid configuration: maxPods' })
})

test('a kubelet that could not be started is reported with the reason, and counts as failed too', async () => {
  const before = event('Running', 'run')
  const tries = [event('Preparing', 'prepare'), event('Waiting', 'retry', 'mount "/dev/nowhere": no such file')]
  expect(await kubeletRun(services(before, ...tries, ...tries), before)).toEqual({
    ready: false,
    failures: 2,
    error: 'mount "/dev/nowhere": no such file',
  })
})
