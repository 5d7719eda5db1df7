import { expect, test } from 'bun:test'
import { silent } from '../../../src/cosi/log.ts'
import { Sequencer } from '../../../src/os/lifecycle/sequencer.ts'
import { Events } from '../../../src/os/runtime/events.ts'

const sequencer = () => new Sequencer(new Events(), silent)

test('phases run in order, the tasks of a phase concurrently', async () => {
  const order: string[] = []
  const both = Promise.withResolvers<void>()
  await sequencer().run('boot', [
    {
      name: 'one',
      tasks: [
        { name: 'a', run: () => both.promise.then(() => void order.push('a')) },
        { name: 'b', run: () => both.resolve() },
      ],
    },
    { name: 'two', tasks: [{ name: 'c', run: () => void order.push('c') }] },
  ])
  expect(order).toEqual(['a', 'c'])
})

test('a failed task ends the sequence, whose error names it', async () => {
  const never: string[] = []
  const broken = { name: 'one', tasks: [{ name: 'wipe', run: () => Promise.reject(new Error('disk is gone')) }] }
  const run = sequencer().run('reset', [broken, { name: 'two', tasks: [{ name: 'x', run: () => void never.push('x') }] }])
  await expect(run).rejects.toThrow('task "wipe": disk is gone')
  expect(never).toEqual([])
})

test('a reboot preempts a boot, a boot does not preempt a reboot', async () => {
  const machine = sequencer()
  let aborted = false
  const untilAborted = (signal: AbortSignal) =>
    new Promise<void>((resolve) =>
      signal.addEventListener('abort', () => {
        aborted = true
        resolve()
      }),
    )
  const boot = machine.run('boot', [
    { name: 'wait', tasks: [{ name: 'wait', run: ({ signal }) => untilAborted(signal) }] },
    { name: 'more', tasks: [] },
  ])
  const outcome = boot.catch((error) => error.message)
  expect(machine.mayStart('reboot')).toBe(true)
  await machine.run('reboot', [])
  expect(await outcome).toContain('takes over')
  expect(aborted).toBe(true)
  const stuck = Promise.withResolvers<void>()
  const reboot = machine.run('reboot', [{ name: 'stop', tasks: [{ name: 'stop', run: () => stuck.promise }] }])
  expect(machine.mayStart('boot')).toBe(false)
  stuck.resolve()
  await reboot
})
