import { afterAll, describe, expect, test } from 'bun:test'
import { silent } from '../../../src/cosi/log.ts'
import { Store } from '../../../src/cosi/store.ts'
import { TimeServerStatus } from '../../../src/os/network/resources/time-server.ts'
import { timeMethods } from '../../../src/os/time/api/time.ts'
import { queryTimeServer, TimeServerError } from '../../../src/os/time/time-server.ts'
import { type NtpPacket, ntpMode, readNtp, toNtpTime, writeNtp } from '../../../src/wire/ntp.ts'

const second = 1_000_000_000n
/** The local clock is constant, so that every offset is exact. */
const here = 1_795_292_960n * second
const now = () => here

type Answer = (request: NtpPacket) => (Partial<NtpPacket> | Uint8Array)[]
const servers: { close(): void }[] = []
afterAll(() => {
  for (const server of servers) server.close()
})

/** Starts a time server on the loopback that answers each request with this function; returns its address. */
async function timeServer(answer: Answer): Promise<string> {
  const socket = await Bun.udpSocket({
    hostname: '127.0.0.1',
    port: 0,
    socket: {
      data(server, datagram, port, address) {
        for (const packet of answer(readNtp(datagram)))
          server.send(packet instanceof Uint8Array ? packet : writeNtp({ mode: ntpMode.server, ...packet }), port, address)
      },
    },
  })
  servers.push(socket)
  return `127.0.0.1:${socket.port}`
}

/** A valid answer of a server that is ahead. */
const ahead =
  (nanoseconds: bigint): Answer =>
  ({ transmitTime }) => {
    const there = toNtpTime(here + nanoseconds)
    return [{ stratum: 2, originTime: transmitTime, receiveTime: there, transmitTime: there }]
  }

const silentServer = await timeServer(() => [])

describe('a time server', () => {
  test('reports how far it is ahead', async () => {
    const { offset, delay, stratum } = await queryTimeServer(await timeServer(ahead(90n * second)), { now })
    expect(offset).toBe(90n * second)
    expect({ delay, stratum }).toEqual({ delay: 0n, stratum: 2 })
  })

  test('is queried with random numbers, not with the local time', async () => {
    const requests: NtpPacket[] = []
    const server = await timeServer((packet) => {
      requests.push(packet)
      return ahead(0n)(packet)
    })
    await queryTimeServer(server, { now })
    await queryTimeServer(server, { now })
    expect(requests.map(({ version, mode }) => [version, mode])).toEqual([
      [4, 3],
      [4, 3],
    ])
    expect(new Set(requests.map(({ transmitTime }) => transmitTime)).size).toBe(2)
    expect(requests.map(({ transmitTime }) => transmitTime)).not.toContain(toNtpTime(here))
  })

  test('is rejected when others answer in its place', async () => {
    const server = await timeServer((request) => [
      Buffer.from('noise'),
      { stratum: 2, originTime: request.transmitTime ^ 1n, receiveTime: 1n, transmitTime: 1n },
      { ...ahead(0n)(request)[0], mode: ntpMode.client },
      ...ahead(7n * second)(request),
    ])
    expect((await queryTimeServer(server, { now })).offset).toBe(7n * second)
  })

  test('is queried again when the first request gets lost', async () => {
    let count = 0
    const server = await timeServer((request) => (++count === 1 ? [] : ahead(second)(request)))
    expect((await queryTimeServer(server, { now, timeout: 200 })).offset).toBe(second)
  })

  test.each<[string, Partial<NtpPacket>, string]>([
    ['refuses', { stratum: 0, reference: Buffer.from('RATE') }, 'refuses to answer: RATE'],
    ['is not set', { stratum: 16 }, 'its own clock is not set'],
    ['has lost its source', { stratum: 3, leap: 3 }, 'its own clock is not set'],
    ['sends no time', { receiveTime: 0n }, 'the answer holds no time'],
  ])('that %s is reported', async (_, answer, message) => {
    const server = await timeServer((request) => [{ ...(ahead(0n)(request)[0] as NtpPacket), ...answer }])
    await expect(queryTimeServer(server, { now })).rejects.toThrow(`time server "${server}": ${message}`)
  })

  test('that is silent or missing is given up', async () => {
    await expect(queryTimeServer(silentServer, { now, timeout: 50 })).rejects.toMatchObject({ name: 'TimeServerError', reason: 'timeout' })
    for (const server of ['', 'a b', 'host:0', 'host:70000', '/dev/ptp0', '[::1', 'a:b:c'])
      await expect(queryTimeServer(server, { now })).rejects.toMatchObject({ name: 'TimeServerError', reason: 'address' })
  })

  test('whose port is closed is reported', async () => {
    const closed = await Bun.udpSocket({ hostname: '127.0.0.1', port: 0 })
    const { port } = closed
    closed.close()
    await expect(queryTimeServer(`127.0.0.1:${port}`, { now })).rejects.toThrow(`time server "127.0.0.1:${port}": ECONNREFUSED`)
  })

  test('is no longer waited for when the caller is gone', async () => {
    const gone = new AbortController()
    const query = queryTimeServer(silentServer, { now, signal: gone.signal })
    gone.abort(new TimeServerError('', 'timeout', 'gone'))
    await expect(query).rejects.toThrow('gone')
  })
})

describe('the time methods', () => {
  const store = new Store()
  const context = { store, log: silent, signal: new AbortController().signal, peer: '10.0.0.1', metadata: {} }
  const [time, check] = timeMethods({ time: { clock: now } })
  const call = async (method: typeof time, request: object) => method!.handle(request as never, context as never)

  test('compare with the servers of the node, in turn', async () => {
    await expect(call(time, {})).rejects.toMatchObject({ status: 'FailedPrecondition' })
    const refusing = await timeServer((request) => [{ stratum: 0, originTime: request.transmitTime }])
    const good = await timeServer(ahead(250_000_000n))
    store.put(TimeServerStatus, 'timeservers', { timeServers: [refusing, good] })
    expect(await call(time, {})).toEqual({
      messages: [
        { server: good, localtime: { seconds: 1_795_292_960, nanos: 0 }, remotetime: { seconds: 1_795_292_960, nanos: 250_000_000 } },
      ],
    })
  })

  test('compare with a server that the caller names', async () => {
    const server = await timeServer(ahead(-second))
    expect(await call(check, { server })).toEqual({
      messages: [{ server, localtime: { seconds: 1_795_292_960, nanos: 0 }, remotetime: { seconds: 1_795_292_959, nanos: 0 } }],
    })
    const gone = new AbortController()
    const waiting = Promise.allSettled(
      Array.from({ length: 8 }, async () => check!.handle({ server: silentServer } as never, { ...context, signal: gone.signal } as never)),
    )
    await expect(call(check, { server })).rejects.toMatchObject({ status: 'ResourceExhausted' })
    gone.abort(new Error('gone'))
    expect((await waiting).map(({ status }) => status)).toEqual(Array(8).fill('rejected'))
    await expect(call(check, { server: '' })).rejects.toMatchObject({ status: 'InvalidArgument' })
    await expect(call(check, { server: 'no server' })).rejects.toMatchObject({ status: 'InvalidArgument' })
  })
})

test('a server whose port is closed is a refusal at once', async () => {
  const query = queryTimeServer('127.0.0.1:1', { now: () => 0n, timeout: 5000 })
  expect(await query.catch((error) => error.message)).toBe('time server "127.0.0.1:1": ECONNREFUSED')
})
