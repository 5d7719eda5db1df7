import { expect, test } from 'bun:test'
import { makeClock } from '../../../src/cosi/clock.ts'
import { createLogger, type LogEntry } from '../../../src/cosi/log.ts'
import { Runtime } from '../../../src/cosi/runtime.ts'
import { Store } from '../../../src/cosi/store.ts'
import { HostnameStatus } from '../../../src/os/network/resources/hostname.ts'
import { NodeAddress } from '../../../src/os/network/resources/node-address.ts'
import { reportStatus } from '../../../src/os/runtime/controllers/console-status.ts'
import { LastProblem } from '../../../src/os/runtime/last-problem.ts'
import { MachineStatus } from '../../../src/os/runtime/resources/machine-status.ts'
import { Version } from '../../../src/os/runtime/resources/version.ts'

test('the console shows version, stage, name, addresses, what is waited for and what went wrong, once for each change', async () => {
  const store = new Store()
  const lines: string[] = []
  const clock = { now: new Date('2026-11-22T09:00:00Z') }
  const problem = new LastProblem({ elapsed: () => clock.now.getTime() })
  const log = createLogger(({ message }) => void lines.push(message))
  const runtime = new Runtime(store, { log, clock: makeClock({ now: () => clock.now, elapsed: () => clock.now.getTime() }) })
  runtime.register(reportStatus(problem))
  runtime.start()
  store.put(Version, 'version', { name: 'Ichor', version: 'v1.13.0' })
  const unmetConditions = [{ name: 'time', reason: 'time is not synced' }]
  store.put(MachineStatus, 'machine', { stage: 'booting', status: { ready: false, unmetConditions } })
  await runtime.settled()
  expect(lines).toEqual(['status: Ichor v1.13.0 | booting | without a name without an address | waits for time (time is not synced)'])
  clock.now = new Date('2026-11-22T09:00:10Z')
  store.put(NodeAddress, 'routed-no-k8s', { addresses: ['10.0.2.15/24', 'fd00::1/64'], sortAlgorithm: 'v1' })
  store.put(HostnameStatus, 'hostname', { hostname: 'one', domainname: '' })
  const entry = (level: LogEntry['level'], message: string, fields = {}): LogEntry => ({ time: clock.now, level, message, fields })
  problem.note(entry('warn', 'controller failed', { controller: 'x', error: 'no way' }))
  store.put(MachineStatus, 'machine', { stage: 'running', status: { ready: true, unmetConditions: [] } })
  await runtime.settled()
  expect(lines[1]).toBe(
    'status: Ichor v1.13.0 | running, ready | one at 10.0.2.15 fd00::1 | last problem: warn: controller failed controller=x error="no way"',
  )
  clock.now = new Date('2026-11-22T09:00:20Z')
  problem.note(entry('info', 'something else'))
  problem.note({ ...entry('info', 'any text', { controller: 'y' }), resolves: true })
  expect(problem.text).toBeDefined()
  problem.note({ ...entry('info', 'any text', { controller: 'x' }), resolves: true })
  await runtime.settled()
  expect(lines.slice(2)).toEqual(['status: Ichor v1.13.0 | running, ready | one at 10.0.2.15 fd00::1'])
  problem.note(entry('warn', 'no time server has answered'))
  clock.now = new Date('2026-11-22T09:00:30Z')
  store.put(HostnameStatus, 'hostname', { hostname: 'two', domainname: '' })
  await runtime.settled()
  expect(lines[3]).toContain('ready | two at 10.0.2.15 fd00::1 | last problem: warn: no time server has answered')
  clock.now = new Date('2026-11-22T09:05:20Z')
  store.put(HostnameStatus, 'hostname', { hostname: 'three', domainname: '' })
  await runtime.settled()
  expect(lines.slice(4)).toEqual(['status: Ichor v1.13.0 | running, ready | three at 10.0.2.15 fd00::1'])
  runtime.stop()
})
