import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { ClockFilter } from '../../../../src/os/time/ntp/clock-filter.ts'
import { type Candidate, consensus } from '../../../../src/os/time/ntp/selection.ts'

const claim = (server: string, offset: number, distance = 0.01, more: Partial<Candidate> = {}): Candidate => ({
  server,
  offset,
  distance,
  jitter: 0.001,
  leap: 0,
  ...more,
})

describe('selection', () => {
  test('a single server is accepted', () => {
    expect(consensus([claim('a', 3)])).toMatchObject({ offset: 3, believed: ['a'], disbelieved: [] })
  })

  test('no server gives no result, and of two that disagree neither is accepted', () => {
    expect(consensus([])).toBeUndefined()
    expect(consensus([claim('a', 0), claim('b', 1)])).toBeUndefined()
  })

  test('a minority of falsetickers that agree is rejected', () => {
    const found = consensus([claim('a', 0), claim('b', 0.002), claim('c', -0.003), claim('d', 7), claim('e', 7.001)])
    expect(found?.disbelieved).toEqual(['d', 'e'])
    expect(Math.abs(found!.offset)).toBeLessThan(0.003)
  })

  test('nearer servers weigh more', () => {
    const found = consensus([claim('near', 0, 0.02), claim('far', 0.01, 0.5)])
    expect(found!.offset).toBeLessThan(0.001)
  })

  test('the majority wins over any minority', () => {
    fc.assert(
      fc.property(fc.array(fc.double({ min: -1e6, max: 1e6, noNaN: true }), { maxLength: 4 }), (lies) => {
        const honest = Array.from({ length: lies.length + 1 }, (_, n) => claim(`h${n}`, 0.001 * n, 0.02))
        const found = consensus([...lies.map((offset, n) => claim(`l${n}`, offset, 0.01)), ...honest])
        expect(found).toBeDefined()
        // A false offset within the distance of the truth cannot be detected, and does little harm.
        expect(Math.abs(found!.offset)).toBeLessThan(0.06)
      }),
    )
  })
})

describe('the clock filter of one server', () => {
  test('the sample with the shortest delay counts, until it is old', () => {
    const filter = new ClockFilter()
    filter.add({ offset: 0.001, delay: 0.01, at: 0 })
    filter.add({ offset: 0.05, delay: 0.2, at: 60 })
    expect(filter.estimate(61)).toMatchObject({ offset: 0.001, at: 0 })
    expect(filter.estimate(61)!.jitter).toBeCloseTo(0.049)
    for (let n = 0; n < 8; n++) filter.add({ offset: 0.03, delay: 0.1, at: 100 + n })
    expect(filter.estimate(110)).toMatchObject({ offset: 0.03 })
  })

  test('no sample gives no estimate, and clearing forgets all samples', () => {
    const filter = new ClockFilter()
    expect(filter.estimate(0)).toBeUndefined()
    filter.add({ offset: 1, delay: 0, at: 0 })
    filter.shift(1)
    expect(filter.estimate(0)).toMatchObject({ offset: 0 })
    filter.clear()
    expect(filter.estimate(0)).toBeUndefined()
  })
})
