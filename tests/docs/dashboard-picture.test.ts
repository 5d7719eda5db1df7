/** The picture of the dashboard, with a server that gives every query the same series. */
import { afterAll, expect, test } from 'bun:test'
import { draw, valueIn } from '../../docs/observability/draw.ts'

const queries: URLSearchParams[] = []
const server = Bun.serve({
  hostname: '127.0.0.1',
  port: 0,
  fetch(request) {
    const { searchParams } = new URL(request.url)
    queries.push(searchParams)
    const start = Number(searchParams.get('start'))
    if (searchParams.get('query')?.includes('nonsense')) return Response.json({ error: 'bad <expression>' }, { status: 400 })
    const values = Array.from({ length: 5 }, (_, index) => [start + index * 60, index === 2 ? 'NaN' : String(index)])
    return Response.json({ data: { result: [{ metric: { instance: 'a<b', device: 'eth0' }, values }] } })
  },
})
afterAll(() => server.stop(true))
const period = { start: 1_700_000_000, end: 1_700_000_600 }

test('every panel is drawn with the data of its queries', async () => {
  const dashboard = await Bun.file(`${import.meta.dir}/../../docs/observability/dashboard.json`).json()
  const picture = await draw(dashboard, server.url.origin, period)
  for (const { title } of dashboard.panels) expect(picture).toContain(`>${title}</text>`)
  expect(picture).toContain('a&lt;b eth0')
  expect(picture).not.toMatch(/NaN|undefined|Infinity|\$__rate_interval|\$instance/)
  for (const query of queries) expect(query.get('query')).not.toContain('$')
  // Well-formed: each element is closed in its order.
  const open: string[] = []
  for (const [, end, name, self] of picture.matchAll(/<(\/?)([a-z]+)[^>]*?(\/?)>/g)) {
    if (end) expect(open.pop()).toBe(name!)
    else if (!self) open.push(name!)
  }
  expect(open).toEqual([])
})

test('a query that is refused ends the drawing with its reason', async () => {
  const panel = { type: 'timeseries', title: 'x', gridPos: { x: 0, y: 0, w: 1, h: 1 }, targets: [{ expr: 'nonsense' }] }
  await expect(draw({ panels: [panel] }, server.url.origin, period)).rejects.toThrow('query "nonsense": bad <expression>')
})

test.each([
  ['percentunit', 0.125, '12.5 %'],
  ['s', 86_400 * 400, '1.1 years'],
  ['s', 0.000_25, '250 µs'],
  ['bytes', 123_456_789, '124 MB'],
  ['Bps', 0, '0 B/s'],
  ['reqps', 1234.5, '1.23 k/s'],
  ['none', -2, '-2'],
])('a value in %s', (unit, value, text) => {
  expect(valueIn(unit, value)).toBe(text)
})
