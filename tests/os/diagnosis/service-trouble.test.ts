import { describe, expect, test } from 'bun:test'
import { serviceTrouble } from '../../../src/os/diagnosis/service-trouble.ts'
import type { ServiceSnapshot } from '../../../src/supervise/snapshot.ts'
import type { State, Step } from '../../../src/supervise/state.ts'

const time = new Date('2026-01-01T00:00:00Z')
const unknown = { unknown: true, healthy: false, lastMessage: '', lastChange: time }
const healthy = { unknown: false, healthy: true, lastMessage: '', lastChange: time }

/** A service after these steps; `healthy` is a check that it passes. */
function after(...steps: [State, (Step | 'healthy')?, string?][]): ServiceSnapshot {
  const events = steps.map(([state, step, message = '']) => ({
    id: 'kubelet',
    state,
    ...(step && step !== 'healthy' && { step }),
    message,
    time,
    health: step === 'healthy' ? healthy : unknown,
  }))
  const last = events.at(-1)!
  return { id: 'kubelet', state: last.state, health: last.health, starts: 1, steady: false, logFrom: 0, events }
}

const started: [State, Step][] = [
  ['Starting', 'start'],
  ['Preparing', 'prepare'],
  ['Running', 'run'],
]
const crashed: [State, Step, string] = ['Waiting', 'retry', 'Task kubelet exited with code 1']

describe('a service with a health check', () => {
  const of = (...steps: Parameters<typeof after>) => serviceTrouble(after(...steps), true)

  test('is unhealthy before it has passed it', () => {
    expect(of(...started)?.sentence).toBe('it was started and has not passed its health check yet')
    expect(of(...started, ['Running', 'healthy'])).toBeUndefined()
  })

  test('is unhealthy again once a restart is requested', () => {
    const restarted = [...started, ['Running', 'healthy'], ['Stopping', 'stop'], ['Finished', 'finish']] as Parameters<typeof after>
    expect(of(...restarted)?.sentence).toBe('it is finished: ')
    expect(of(...restarted, ...started)?.sentence).toBe('it was started and has not passed its health check yet')
  })

  test('that keeps exiting is reported with its exit and its log, also while it runs', () => {
    const trouble = { sentence: 'it does not stay up', error: 'Task kubelet exited with code 1', logOf: 'kubelet' }
    expect(of(...started, crashed)).toMatchObject({ ...trouble, times: 1 })
    expect(of(...started, crashed, ['Preparing', 'prepare'])).toMatchObject({ ...trouble, times: 1 })
    expect(of(...started, crashed, ['Preparing', 'prepare'], ['Running', 'run'])).toMatchObject({ ...trouble, times: 1 })
    expect(of(...started, crashed, ['Preparing', 'prepare'], ['Running', 'run'], crashed)).toMatchObject({ ...trouble, times: 2 })
  })
})

test('a service without a health check is healthy while it runs, and after an exit once it has run for a while', () => {
  const again = after(...started, crashed, ['Preparing', 'prepare'], ['Running', 'run'])
  expect(serviceTrouble(after(...started), false)).toBeUndefined()
  expect(serviceTrouble(again, false)?.sentence).toBe('it does not stay up')
  expect(serviceTrouble({ ...again, steady: true }, false)).toBeUndefined()
})
