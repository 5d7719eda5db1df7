/** Deliveries over real sockets of this host, to receivers that come and go. */
import { afterEach, expect, test } from 'bun:test'
import { systemClock } from '../../../../src/cosi/clock.ts'
import { silent } from '../../../../src/cosi/log.ts'
import { unacknowledged } from '../../../../src/linux/net/socket.ts'
import { deliver } from '../../../../src/os/telemetry/shipping/delivery.ts'
import { DeliveryCounts } from '../../../../src/os/telemetry/shipping/delivery-counts.ts'
import { endpointOf } from '../../../../src/os/telemetry/shipping/endpoint.ts'
import { LogFeed } from '../../../../src/os/telemetry/shipping/log-feed.ts'
import { openCarrier } from '../../../../src/os/telemetry/shipping/open-carrier.ts'
import { newCA, newCertificate } from '../../../../src/pki/certificate.ts'
import { Logs } from '../../../../src/supervise/logs.ts'

const timing = { firstDelay: 5, longestDelay: 20, lookInterval: 5, settleTime: 20 }

const ends: (() => void)[] = []
afterEach(() => {
  for (const end of ends.splice(0)) end()
})

/** Logs, and deliveries of them. */
function node() {
  const logs = new Logs()
  const to = (url: string, roots = '') => {
    const stop = new AbortController()
    ends.push(() => stop.abort())
    const counts = new DeliveryCounts(url, systemClock)
    const feed = new LogFeed({
      logs: () => [...logs.entries()],
      subscribe: (listener) => logs.subscribe(listener),
      files: { read: () => undefined },
      tags: () => ({}),
      now: () => new Date(),
      dropped: (_, count, unit) => counts.drop(count, unit),
    })
    const context = { open: openCarrier, clock: systemClock, log: silent, counts, unacknowledged, outbound: { roots: () => roots }, timing }
    return { counts, feed, done: deliver(endpointOf(url), feed, context, stop.signal), stop: () => stop.abort() }
  }
  return { logs, log: logs.open('a'), to }
}

/** A receiver of lines; `saw` resolves when it has received a line with this text. */
function receiver({ port = 0, tls, read = true }: { port?: number; tls?: Bun.TLSOptions; read?: boolean } = {}) {
  const lines: string[] = []
  const open = new Set<Bun.Socket<{ rest: string }>>()
  let came = () => {}
  const server = Bun.listen<{ rest: string }>({
    hostname: '127.0.0.1',
    port,
    ...(tls && { tls }),
    socket: {
      open(socket) {
        socket.data = { rest: '' }
        open.add(socket)
        if (!read) socket.pause()
      },
      data(socket, bytes) {
        const parts = `${socket.data.rest}${bytes}`.split('\n')
        socket.data.rest = parts.pop() ?? ''
        lines.push(...parts.map((part) => JSON.parse(part).msg))
        came()
      },
      close: (socket) => void open.delete(socket),
    },
  })
  const stop = () => {
    server.stop(true)
    for (const socket of open) socket.terminate()
  }
  ends.push(stop)
  const saw = async (text: string) => {
    while (!lines.includes(text)) await new Promise<void>((resolve) => (came = resolve))
  }
  return { lines, port: server.port, saw, stop, connections: () => open.size }
}

const numbered = (from: number, to: number) => Array.from({ length: to - from }, (_, index) => String(from + index))

test('a receiver that goes away and returns has every line', async () => {
  const { log, to } = node()
  const first = receiver()
  to(`tcp://127.0.0.1:${first.port}`)
  for (const line of numbered(0, 500)) log.line(line)
  await first.saw('499')
  first.stop()
  for (const line of numbered(500, 1000)) log.line(line)
  const second = receiver({ port: first.port })
  await second.saw('999')
  expect(numbered(0, 1000).filter((line) => !first.lines.includes(line) && !second.lines.includes(line))).toEqual([])
})

test('what a receiver has had for a while is not sent to it again', async () => {
  const { log, to } = node()
  const first = receiver()
  const { counts } = to(`tcp://127.0.0.1:${first.port}`)
  log.line('before')
  while (counts.sent < 1) await Bun.sleep(5)
  first.stop()
  log.line('after')
  const second = receiver({ port: first.port })
  await second.saw('after')
  expect(second.lines).toEqual(['after'])
})

test('a receiver that does not read holds up no other', async () => {
  const { log, to } = node()
  const stalled = receiver({ read: false })
  const live = receiver()
  to(`tcp://127.0.0.1:${stalled.port}`)
  to(`tcp://127.0.0.1:${live.port}`)
  const rest = 'x'.repeat(1000)
  for (let round = 0; round < 100; round++) {
    for (const line of numbered(round * 200, round * 200 + 200)) log.line(`${line} ${rest}`)
    await live.saw(`${round * 200 + 199} ${rest}`)
  }
  expect(live.lines.length).toBe(20_000)
  expect(stalled.lines).toEqual([])
})

test('an error is reported once, and is over once something was delivered', async () => {
  const { log, to } = node()
  const closed = receiver()
  closed.stop()
  const { counts } = to(`tcp://127.0.0.1:${closed.port}`)
  log.line('waits')
  while (counts.lastError === '') await Bun.sleep(5)
  expect(counts.isConnected).toBe(false)
  await receiver({ port: closed.port }).saw('waits')
  while (counts.sent < 1) await Bun.sleep(5)
  expect([counts.isConnected, counts.lastError]).toEqual([true, ''])
})

test('a delivery that is stopped ends', async () => {
  const { log, to } = node()
  const { saw, port } = receiver()
  const { done, stop } = to(`tcp://127.0.0.1:${port}`)
  log.line('a line')
  await saw('a line')
  stop()
  await done
})

test('datagrams hold a message each, and a refused one is sent again', async () => {
  const { log, to } = node()
  const lines: string[] = []
  let came = () => {}
  const listen = (port: number) =>
    Bun.udpSocket({
      hostname: '127.0.0.1',
      port,
      socket: {
        data(_, bytes) {
          lines.push(JSON.parse(bytes.toString()).msg)
          came()
        },
      },
    })
  const first = await listen(0)
  const { port } = first
  first.close()
  const { counts } = to(`udp://127.0.0.1:${port}`)
  log.line('one')
  log.line('two')
  while (counts.lastError === '') await Bun.sleep(5)
  const second = await listen(port)
  ends.push(() => second.close())
  while (!lines.includes('two')) await new Promise<void>((resolve) => (came = resolve))
  expect(lines.slice(0, 2)).toEqual(['one', 'two'])
})

const authorityOf = (name: string) => newCA({ subject: { organizations: [name] }, kind: 'ecdsa' })

test('over TLS a receiver of a trusted authority and of the right name gets the lines, others get none', async () => {
  const { log, to } = node()
  log.line('secret')
  const authority = authorityOf('trusted')
  const tls = (address: string) => {
    const options = { ca: authority, subject: { commonName: 'receiver' }, usage: ['serverAuth' as const], lifetime: 60_000 }
    const { crt, key } = newCertificate({ ...options, sans: { ips: [address] } })
    return { cert: crt, key }
  }
  const right = receiver({ tls: tls('127.0.0.1') })
  const wrong = receiver({ tls: tls('127.0.0.2') })
  to(`tls://127.0.0.1:${right.port}`, authority.crt)
  const { counts: other } = to(`tls://127.0.0.1:${wrong.port}`, authority.crt)
  const { counts: unknown } = to(`tls://127.0.0.1:${right.port}`, authorityOf('other').crt)
  await right.saw('secret')
  while (other.lastError === '' || unknown.lastError === '') await Bun.sleep(5)
  expect(other.lastError).toContain('is not for "127.0.0.1"')
  expect(unknown.lastError).toContain('is not trusted')
  expect(wrong.lines).toEqual([])
})
