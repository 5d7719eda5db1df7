import { expect, test } from 'bun:test'
import { SerialQueue } from '../../src/timing/serial-queue.ts'

test('work begins when all before it has ended, in its order, also after a failure', async () => {
  const queue = new SerialQueue()
  const steps: string[] = []
  const gate = Promise.withResolvers<void>()
  const first = queue.run(async () => {
    steps.push('first begins')
    await gate.promise
    steps.push('first ends')
    throw new Error('first fails')
  })
  const second = queue.run(async () => {
    steps.push('second')
    return 2
  })
  await Promise.resolve()
  expect(steps).toEqual(['first begins'])
  gate.resolve()
  await expect(first).rejects.toThrow('first fails')
  expect([await second, steps]).toEqual([2, ['first begins', 'first ends', 'second']])
})
