import { expect, setSystemTime, test } from 'bun:test'
import { preferred } from '../../../src/os/k8s/controllers/kube-prism/kube-prism.ts'
import { TcpBalancer } from '../../../src/os/k8s/tcp-balancer.ts'

const serve = (answer: string, port = 0) => Bun.serve({ hostname: '127.0.0.1', port, fetch: () => new Response(answer) })
const balancer = (holdTime = 0) => {
  const made = new TcpBalancer({ hostname: '127.0.0.1', port: 0, retry: 5 })
  made.listen(holdTime)
  return made
}
const ask = async (port: number | undefined) => (await fetch(`http://127.0.0.1:${port}/`, { keepalive: false })).text()

test('the first upstream that accepts gets the connection', async () => {
  const [first, second] = [serve('first'), serve('second')]
  const b = balancer()
  b.setUpstreams([
    { host: '127.0.0.1', port: 1 },
    { host: '127.0.0.1', port: first.port! },
    { host: '127.0.0.1', port: second.port! },
  ])
  expect(await b.check()).toBe(true)
  expect(await ask(b.port)).toBe('first')
  await first.stop(true)
  expect(await ask(b.port)).toBe('second')
  await second.stop(true)
  expect(await b.check()).toBe(false)
  expect(b.healthy).toBe(false)
  b.close()
})

test('a client that comes too early is held until somebody accepts', async () => {
  const b = balancer(8000)
  b.setUpstreams([])
  const answer = ask(b.port)
  await b.check()
  const late = serve('late')
  b.setUpstreams([{ host: '127.0.0.1', port: late.port! }])
  expect(await answer).toBe('late')
  await late.stop(true)
  b.close()
})

test('a client without a hold time is let go, and one that is refused never gets in', async () => {
  const b = balancer()
  const port = b.port
  await expect(ask(port)).rejects.toThrow()
  b.refuse()
  await expect(ask(port)).rejects.toThrow('Unable to connect')
  expect(b.port).toBeUndefined()
  b.close()
})

test('a last resort is not used while the others are only silent for a moment', async () => {
  const resort = serve('resort')
  const b = balancer()
  b.setUpstreams([
    { host: '127.0.0.1', port: 1 },
    { host: '127.0.0.1', port: resort.port!, lastResort: true },
  ])
  expect(await b.check()).toBe(false)
  b.setUpstreams([{ host: '127.0.0.1', port: resort.port!, lastResort: true }])
  expect(await b.check()).toBe(true)
  await resort.stop(true)
  b.close()
})

test.each([86_400_000, -86_400_000])('a step of the wall clock by %d ms is no silence of the others', async (step) => {
  const [direct, resort] = [serve('direct'), serve('resort')]
  const b = balancer()
  b.setUpstreams([
    { host: '127.0.0.1', port: direct.port! },
    { host: '127.0.0.1', port: resort.port!, lastResort: true },
  ])
  expect(await b.check()).toBe(true)
  await direct.stop(true)
  setSystemTime(new Date(Date.now() + step))
  expect(await b.check()).toBe(false)
  setSystemTime()
  await resort.stop(true)
  b.close()
})

test('much data passes both ways', async () => {
  const echo = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: async (request) => new Response(await request.bytes()) })
  const b = balancer()
  b.setUpstreams([{ host: '127.0.0.1', port: echo.port! }])
  const body = new Uint8Array(5_000_000).map((_, i) => i % 253)
  const reply = await (await fetch(`http://127.0.0.1:${b.port}/`, { method: 'POST', body })).bytes()
  expect(Bun.hash(reply)).toBe(Bun.hash(body))
  await echo.stop(true)
  b.close()
})

test("this node's own API server comes first, the common address last, each once", () => {
  const endpoint = (host: string) => ({ host, port: 6443 })
  expect(preferred([endpoint('10.0.0.1'), endpoint('localhost'), endpoint('10.0.0.2'), endpoint('10.0.0.3')])).toEqual([
    endpoint('127.0.0.1'),
    endpoint('10.0.0.2'),
    endpoint('10.0.0.3'),
    { ...endpoint('10.0.0.1'), lastResort: true },
  ])
  expect(preferred([endpoint('10.0.0.2'), endpoint('10.0.0.2')])).toEqual([endpoint('10.0.0.2')])
})
