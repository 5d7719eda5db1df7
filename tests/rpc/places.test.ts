import { expect, test } from 'bun:test'
import { makeClock } from '../../src/cosi/clock.ts'
import { Places } from '../../src/rpc/server/places.ts'

const limits = { each: 3, all: 6, time: 60_000 }
const stays = new AbortController().signal
const forever = () => new Promise<never>(() => {})

function places() {
  let pass = () => {}
  const sleep = (_: number, signal?: AbortSignal) =>
    new Promise<void>((resolve) => {
      pass = resolve
      signal?.addEventListener('abort', () => resolve())
    })
  return { places: new Places('checks', limits, makeClock({ sleep })), pass: () => pass() }
}

/** How a piece of work ended, once it has. */
const end = (work: Promise<unknown>) => work.then(String, (error) => `${error.status ?? ''} ${error.message}`)

test('a caller has few slots, and gets them back when its work is done', async () => {
  const { places: all } = places()
  const work = Promise.withResolvers<string>()
  const begun = Array.from({ length: limits.each }, () => all.run('a', stays, () => work.promise))
  expect(await end(all.run('a', stays, forever))).toBe('ResourceExhausted checks: 3 of this caller are already running')
  expect(await all.run('b', stays, async () => 'done')).toBe('done')
  work.resolve('done')
  await Promise.all(begun)
  expect(await all.run('a', stays, async () => 'again')).toBe('again')
})

test('when all slots are taken, the caller with most of them loses its oldest to a newcomer', async () => {
  const { places: all } = places()
  const begun = ['a', 'a', 'a', 'b', 'b', 'b'].map((caller) => {
    const seen: { signal?: AbortSignal } = {}
    const ended = end(
      all.run(caller, stays, (signal) => {
        seen.signal = signal
        return forever()
      }),
    )
    return { seen, ended }
  })
  expect(await all.run('c', stays, async () => 'done')).toBe('done')
  expect(await begun[0]!.ended).toBe('ResourceExhausted checks: 6 are already running, most of them of this caller')
  expect(begun.map(({ seen }) => seen.signal?.aborted)).toEqual([true, false, false, false, false, false])
  const back = end(all.run('a', stays, forever))
  expect(await end(all.run('a', stays, forever))).toContain('of this caller are already running')
  for (const caller of ['c', 'd']) end(all.run(caller, stays, forever))
  expect(await begun[1]!.ended).toContain('most of them of this caller')
  expect(await begun[3]!.ended).toContain('most of them of this caller')
  for (const caller of ['e', 'f']) end(all.run(caller, stays, forever))
  expect(await end(all.run('g', stays, forever))).toBe('ResourceExhausted checks: 6 are already running')
  expect(await begun[4]!.ended).toContain('most of them of this caller')
  expect(await begun[2]!.ended).toContain('most of them of this caller')
  expect(await Promise.race([back, 'under way'])).toBe('under way')
})

test('work that takes too long, or whose caller is gone, is stopped and releases its slot', async () => {
  const { places: all, pass } = places()
  const late = end(all.run('a', stays, forever))
  pass()
  expect(await late).toBe('DeadlineExceeded checks: not finished within 60 s')
  const caller = new AbortController()
  const begun = Array.from({ length: limits.each }, () => end(all.run('a', caller.signal, forever)))
  caller.abort(new Error('the caller is gone'))
  for (const one of begun) expect(await one).toContain('the caller is gone')
  expect(await all.run('a', stays, async () => 'done')).toBe('done')
})

test('a held slot is free after its release, and its holder is notified when it loses it', async () => {
  const { places: all } = places()
  const held = ['a', 'a', 'a', 'b', 'b', 'b'].map((caller) => all.hold(caller, stays))
  expect(() => all.hold('a', stays)).toThrow('3 of this caller are already running')
  using newcomer = all.hold('c', stays)
  expect(newcomer.signal.aborted).toBe(false)
  expect(held.map(({ signal }) => signal.aborted)).toEqual([true, false, false, false, false, false])
  held[1]![Symbol.dispose]()
  using again = all.hold('a', stays)
  expect(again.signal.aborted).toBe(false)
})
