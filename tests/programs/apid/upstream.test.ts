import { afterEach, expect, setSystemTime, test } from 'bun:test'
import { Upstream } from '../../../src/programs/apid/upstream.ts'

afterEach(() => setSystemTime())

/** A backend that is not there, and how often it was dialed. */
function absent(firstBackoff: number) {
  let dials = 0
  const target = () => {
    dials++
    return { unix: '/run/nobody.sock' }
  }
  const upstream = new Upstream(target, { connectTimeout: 1_000, firstBackoff, maxBackoff: firstBackoff, idle: 60_000, ping: 0 })
  return { upstream, dials: () => dials }
}

test('a wall clock that is stepped ahead shortens no pause after a failed dial', async () => {
  const { upstream, dials } = absent(60_000)
  await expect(Promise.resolve(upstream.connection())).rejects.toThrow()
  setSystemTime(new Date(Date.now() + 86_400_000))
  await expect(Promise.resolve(upstream.connection())).rejects.toThrow()
  expect(dials()).toBe(1)
})

test('one that is stepped back lengthens none', async () => {
  const { upstream, dials } = absent(1)
  await expect(Promise.resolve(upstream.connection())).rejects.toThrow()
  setSystemTime(new Date(Date.now() - 86_400_000))
  while (dials() < 2) {
    await Promise.resolve(upstream.connection()).catch(() => {})
    await new Promise(setImmediate) // a test that fails must be able to run out of time
  }
})
