import { afterEach, expect, jest, test } from 'bun:test'
import { within } from '../../src/timing/within.ts'

const late = () => new Error('no answer within 5 s')

afterEach(() => {
  jest.useRealTimers()
})

test('an answer in time is the answer, and leaves no timer', async () => {
  jest.useFakeTimers()
  expect(await within(Promise.resolve('answer'), 5000, late)).toBe('answer')
  expect(jest.getTimerCount()).toBe(0)
})

test('a failure in time is the failure', async () => {
  await expect(within(Promise.reject(new Error('refused')), 5000, late)).rejects.toThrow('refused')
})

test('without an answer in time it fails with the given error, and ignores an answer or failure that comes later', async () => {
  jest.useFakeTimers()
  const answer = Promise.withResolvers<string>()
  const waiting = within(answer.promise, 5000, late)
  jest.advanceTimersByTime(5000)
  await expect(waiting).rejects.toThrow('no answer within 5 s')
  answer.reject(new Error('too late'))
  await Promise.resolve()
})
