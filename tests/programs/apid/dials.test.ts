import { expect, test } from 'bun:test'
import { makeClock } from '../../../src/cosi/clock.ts'
import { Dials, dialLimits } from '../../../src/programs/apid/dials.ts'
import { failure } from './nodes.ts'

/** Dials on a clock that stands still until it is moved. */
function dials() {
  let elapsed = 0
  const sleepers: { until: number; wake: () => void }[] = []
  const sleep = (ms: number) => new Promise<void>((wake) => sleepers.push({ until: elapsed + ms, wake }))
  const pass = (ms: number) => {
    elapsed += ms
    for (const { until, wake } of sleepers) if (until <= elapsed) wake()
  }
  return { dials: new Dials(makeClock({ elapsed: () => elapsed, sleep })), pass }
}

const here = () => false
const turns = () => new Promise(setImmediate)

test('a client has few dials at a time, the others wait for their turn, and other clients do not', async () => {
  const { dials: all } = dials()
  const open: PromiseWithResolvers<void>[] = []
  const slow = () => {
    open.push(Promise.withResolvers())
    return open.at(-1)!.promise
  }
  const begun = Array.from({ length: 1000 }, () => all.run('reader', here, slow))
  await turns()
  expect(open).toHaveLength(dialLimits.atOnce)
  expect(await all.run('admin', here, () => 'at once')).toBe('at once')
  open[0]!.reject(new Error('nobody there'))
  await expect(begun[0]).rejects.toThrow('nobody there')
  await turns()
  expect(open).toHaveLength(dialLimits.atOnce + 1)
  for (let n = 1; n < 1000; n++) {
    open[n]!.resolve()
    await begun[n]
  }
  expect(open).toHaveLength(1000)
})

test('a caller that waits too long is refused, and one that is gone dials nothing', async () => {
  const { dials: all, pass } = dials()
  const first = Promise.withResolvers<void>()
  const begun = Array.from({ length: dialLimits.atOnce }, () => all.run('reader', here, () => first.promise))
  const late = failure(all.run('reader', here, () => 'dialed'))
  pass(dialLimits.wait)
  expect(await late).toEqual([
    'ResourceExhausted',
    `${dialLimits.atOnce} connections to nodes are being made for you already: name fewer nodes at a time`,
  ])
  let closed = false
  let dialed = false
  const gone = failure(
    all.run(
      'reader',
      () => closed,
      () => {
        dialed = true
      },
    ),
  )
  closed = true
  first.resolve()
  await Promise.all(begun)
  expect([await gone, dialed]).toEqual([['Canceled', 'the caller is gone'], false])
})

test('a client cannot dial without end: a thousand nodes twice over, then so many a second', async () => {
  const { dials: all, pass } = dials()
  const dial = () => all.run('reader', here, () => 'dialed')
  for (let n = 0; n < dialLimits.burst; n++) await dial()
  expect(await failure(dial())).toMatchObject([
    'ResourceExhausted',
    `too many connections to nodes for you: at most ${dialLimits.rate} a second`,
  ])
  expect(await all.run('admin', here, () => 'dialed')).toBe('dialed')
  pass(1000)
  for (let n = 0; n < dialLimits.rate; n++) await dial()
  expect(await failure(dial())).toMatchObject(['ResourceExhausted', expect.anything()])
})
