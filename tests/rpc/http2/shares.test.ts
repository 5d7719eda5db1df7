/** Who loses when clients hold too much of a server: the one that holds most, and nobody else. */
import { afterAll, afterEach, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import type { HeldConnection } from '../../../src/rpc/http2/holder.ts'
import { type Listener, listen } from '../../../src/rpc/http2/listen.ts'
import { addressKey, type Share, Shares } from '../../../src/rpc/http2/shares.ts'
import type { Stream } from '../../../src/rpc/http2/stream.ts'
import { flag, frameType } from '../../../src/wire/http2/frame.ts'
import { runs } from '../../support/runs.ts'
import { RawClient } from './raw-client.ts'
import { sessionPair } from './session-pair.ts'

const folder = mkdtempSync(join(tmpdir(), 'ichor-shares-'))
const listeners: Listener[] = []
const clients: RawClient[] = []
afterEach(() => {
  for (const client of clients.splice(0)) client.close()
})
afterAll(async () => {
  for (const listener of listeners) await listener.close()
  rmSync(folder, { recursive: true, force: true })
})

const many = { connections: 1000, calls: 1000, bytes: 1 << 30 }

class Fake implements HeldConnection {
  charged = 0
  size = 0
  awaitsRequests = false
  ended: string | undefined
  constructor(readonly share: Share) {}
  charge(bytes: number): void {
    this.charged += bytes
    this.share.charge(bytes)
  }
  exhaust(message: string): void {
    this.ended = message
    this.charge(-this.charged)
    this.share.close(this)
    this.share.disconnect(this)
  }
}

describe('a client that holds too much', () => {
  const limits = { ...many, bytes: 1000 }
  let now = 0
  const shares = new Shares({ address: limits, identity: limits, all: many }, () => now)
  const greedy = shares.of({ address: '192.0.2.30', identity: 'greedy' })
  greedy.connect(new Fake(greedy))
  const hold = async () => {
    const call = new Fake(greedy)
    const refusal = greedy.open(call)
    if (refusal) return refusal
    call.charge(1001)
    for (let turn = 0; turn < 3; turn++) await Promise.resolve()
    return call.ended ? 'ended' : 'open'
  }
  const holdMany = async (count: number) => {
    const seen: string[] = []
    for (let n = 0; n < count; n++) seen.push(await hold())
    return seen
  }

  test('repeatedly is refused for a while, longer each time, while others are served', async () => {
    expect(new Set(await holdMany(65))).toEqual(new Set(['ended']))
    expect(await hold()).toBe('calls of this client repeatedly exceeded their limits: retry in 250 ms')
    expect(shares.of({ address: '192.0.2.30', identity: 'other' }).open(new Fake(greedy))).toBeUndefined()
    now += 250
    expect((await holdMany(3)).filter((one) => one === 'ended').length).toBe(2)
    now += 499
    expect(await hold()).toContain('retry in 1 ms')
    // One that stays away for a while is trusted again.
    now += 30_000
    expect(new Set(await holdMany(65))).toEqual(new Set(['ended']))
    expect(await hold()).toContain('250 ms')
  })
})

describe('calls', () => {
  const shares = new Shares({ address: { ...many, calls: 10 }, identity: { ...many, calls: 8 }, all: many })
  const opened = (share: Share, count: number) =>
    Array.from({ length: count }, () => {
      const call = new Fake(share)
      return { call, refusal: share.open(call) }
    })

  test('of one identity are refused beyond its limit, at all its addresses together', () => {
    const [here, there] = ['192.0.2.1', '192.0.2.2'].map((address) => shares.of({ address, identity: 'one' })) as [Share, Share]
    const calls = opened(here, 8)
    expect(calls.every(({ refusal }) => refusal === undefined)).toBe(true)
    expect(opened(here, 1)[0]?.refusal).toBe('this identity has too many calls open: at most 8 at a time')
    // Another holder of the certificate gets what the greedy one has too much of.
    expect(opened(there, 3).map(({ refusal }) => refusal)).toEqual([undefined, undefined, undefined])
    expect(calls.filter(({ call }) => call.ended).length).toBe(3)
    for (const { call } of calls) call.exhaust('')
  })

  test('of one address are shared between its identities', () => {
    const [greedy, modest] = ['greedy', 'modest'].map((identity) => shares.of({ address: '192.0.2.9', identity })) as [Share, Share]
    const calls = opened(greedy, 8)
    expect(opened(modest, 5).every(({ refusal }) => refusal === undefined)).toBe(true)
    expect(calls.filter(({ call }) => call.ended).length).toBe(3)
    expect(opened(modest, 1)[0]?.refusal).toContain('address 192.0.2.9 has too many calls open')
  })

  test('that fan out count as several', () => {
    const share = shares.of({ address: '192.0.2.20', identity: 'fan' })
    const call = new Fake(share)
    expect(share.open(call, 8)).toBeUndefined()
    expect(opened(share, 1)[0]?.refusal).toBeDefined()
    share.close(call)
    expect(opened(share, 1)[0]?.refusal).toBeUndefined()
  })
})

describe('bytes', () => {
  test('beyond the limit end the largest call of the largest client, after this turn', async () => {
    const shares = new Shares({ address: many, identity: many, all: { ...many, bytes: 100 } })
    const calls = ['one', 'two', 'two'].map((identity) => new Fake(shares.of({ identity })))
    for (const [at, bytes] of [60, 30, 40].entries()) {
      calls[at]!.share.open(calls[at]!)
      calls[at]!.charge(bytes)
    }
    expect(calls.every(({ ended }) => ended === undefined)).toBe(true)
    await Promise.resolve()
    expect(calls.map(({ ended }) => ended !== undefined)).toEqual([false, false, true])
  })
})

describe('connections', () => {
  const limits = { address: { ...many, connections: 3 }, identity: many, all: many }

  test('without calls are closed first, then those that only wait for requests, the oldest first', () => {
    const share = new Shares(limits).of({ address: '192.0.2.1' })
    const held = [1, 1, 0].map((size, at) => Object.assign(new Fake(share), { size, awaitsRequests: at === 1 }))
    for (const connection of held) expect(share.connect(connection)).toBeUndefined()
    const next = () => Object.assign(new Fake(share), { size: 1 })
    expect(share.connect(next())).toBeUndefined()
    expect(share.connect(next())).toBeUndefined()
    expect(held.map(({ ended }) => ended !== undefined)).toEqual([false, true, true])
    expect(share.connect(next())).toBe('address 192.0.2.1 has too many connections: at most 3')
  })

  test('of the client with most of them are closed for those of others', () => {
    const shares = new Shares(limits)
    const greedy = shares.of({ address: '192.0.2.1', identity: 'greedy' })
    const held = Array.from({ length: 3 }, () => Object.assign(new Fake(greedy), { size: 1 }))
    for (const connection of held) greedy.connect(connection)
    const modest = shares.of({ address: '192.0.2.1', identity: 'modest' })
    expect(modest.connect(Object.assign(new Fake(modest), { size: 1 }))).toBeUndefined()
    expect(held.map(({ ended }) => ended !== undefined)).toEqual([true, false, false])
  })
})

test('the counters match after any sequence of open, charge and end', () => {
  const step = fc.record({ who: fc.nat(5), what: fc.constantFrom('open', 'connect', 'charge', 'end'), amount: fc.nat(40) })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 80 }), (steps) => {
      const limits = { connections: 6, calls: 6, bytes: 100 }
      const shares = new Shares({ address: limits, identity: limits, all: { connections: 9, calls: 9, bytes: 150 } })
      const holders: Fake[] = []
      for (const { who, what, amount } of steps) {
        const share = shares.of({ address: `192.0.2.${who % 2}`, identity: `i${who % 3}` })
        const holder = new Fake(share)
        if (what === 'open' && share.open(holder) === undefined) holders.push(holder)
        else if (what === 'connect' && share.connect(holder) === undefined) holders.push(holder)
        const some = holders.filter(({ ended }) => ended === undefined)[amount % 7]
        if (what === 'charge') some?.charge(amount)
        if (what === 'end') some?.exhaust('')
      }
      const alive = holders.filter(({ ended }) => ended === undefined)
      for (const share of new Set(alive.map((holder) => holder.share)))
        expect(share.used.bytes).toBe(alive.reduce((sum, holder) => sum + (holder.share === share ? holder.charged : 0), 0))
      for (const holder of alive) holder.exhaust('')
      for (const { share } of holders) expect(share.used).toEqual({ connections: 0, calls: 0, bytes: 0 })
    }),
    { seed: 7, numRuns: runs(100) },
  )
})

describe('headers', () => {
  const limited = { ...many, bytes: 256 * 1024 }
  const large = { 'x-large': 'y'.repeat(15_000) }
  const came: Stream[] = []

  /** Connections to a listener whose clients may hold little, and whose calls never end. */
  async function connections(name: string, count: number): Promise<RawClient[]> {
    const path = join(folder, name)
    const shares = new Shares({ address: many, identity: many, all: limited })
    listeners.push(listen({ unix: path }, { maxStreams: 1000, shares, welcome: () => ({ request: (stream) => came.push(stream) }) }))
    const opened = await Promise.all(Array.from({ length: count }, () => RawClient.connect(path)))
    clients.push(...opened)
    return opened
  }

  test('that are large are charged as long as their call lasts', async () => {
    const [client] = (await connections('headers', 1)) as [RawClient]
    for (let n = 0; n < 40; n++) client.request(1 + 2 * n, large)
    const ended = () => client.frames.filter((line) => /^HEADERS \d+ end$/.test(line)).length
    const fit = (256 * 1024) / 11_000
    await client.until(() => ended() >= 40 - fit)
    expect(client.headers.get(1)?.['grpc-message']).toContain('waits for more than 262144 bytes')
    client.request(81)
    while (came.at(-1)?.id !== 81) await Bun.sleep(1)
    expect([came.at(-1)?.closed, came.at(-1)?.charged]).toEqual([false, 0])
  })

  test('that are incomplete are charged to their connection', async () => {
    const half = await connections('half-headers', 40)
    for (const client of half) client.request(1, large, 0)
    await Promise.all(half.slice(0, 15).map((client) => client.end()))
    expect(half.filter(({ closed }) => !closed).length).toBeGreaterThan(5)
  })

  test('behind a request are not kept', async () => {
    const [client] = (await connections('trailers', 1)) as [RawClient]
    came.length = 0
    client.request(1, {}, flag.END_HEADERS)
    while (came.length === 0) await Bun.sleep(1)
    const stream = came.at(-1)!
    const { promise, resolve } = Promise.withResolvers<unknown>()
    client.trailers(1, large)
    stream.read({ data() {}, end: (trailers) => resolve(trailers) })
    expect(await promise).toBeUndefined()
  })
})

test('a share is kept for the next calls of its client, until many others were used since', () => {
  const shares = new Shares({ address: many, identity: many, all: many })
  const use = (address: string) => {
    const share = shares.of({ address })
    const call = new Fake(share)
    expect(share.open(call)).toBeUndefined()
    return { share, end: () => share.close(call) }
  }
  const first = use('192.0.2.1')
  first.end()
  expect(use('192.0.2.1').share).toBe(first.share)
  const second = use('192.0.2.2')
  second.end()
  for (let n = 3; n < 200; n++) use(`192.0.2.${n}`).end()
  expect(shares.of({ address: '192.0.2.1' })).toBe(first.share)
  expect(shares.of({ address: '192.0.2.2' })).not.toBe(second.share)
})

test('an address counts as itself, an IPv6 address as its /64 network', () => {
  expect(addressKey('::ffff:192.0.2.1')).toBe('192.0.2.1')
  expect(addressKey('192.0.2.1')).toBe('192.0.2.1')
  expect(addressKey('2001:db8:1:2::5')).toBe(addressKey('2001:db8:1:2:ffff::1'))
  expect(addressKey('fe80::1%eth0')).toBe('fe80000000000000/64')
})

describe('requests beyond the turn of their client', () => {
  const burst = async (count: number, headers: Record<string, string>) => {
    let came = 0
    const { client, counts } = await sessionPair({
      request: () => void came++,
      share: new Shares({ address: many, identity: many, all: many }).of({ address: '192.0.2.1' }),
    })
    for (let n = 0; n < count; n++) client.request({ ':method': 'POST', ':scheme': 'http', ':path': `/${n}`, ...headers })
    await Promise.resolve()
    expect(came).toBeLessThan(count)
    while (came < count) await Bun.sleep(0)
    await Bun.sleep(0)
    return counts
  }

  test('wait without a pause of their connection when they are small', async () => {
    expect(await burst(40, {})).toMatchObject({ pauses: 0, resumes: 0 })
  })

  test('pause their connection when they are large, until all were processed', async () => {
    expect(await burst(40, { 'x-large': 'x'.repeat(2000) })).toMatchObject({ pauses: 1, resumes: 1 })
  })
})

test('a burst of requests of one client does not delay those of others until its end', async () => {
  const path = join(folder, 'turns')
  const came: string[] = []
  let first = () => {}
  listeners.push(
    listen(
      { unix: path },
      {
        maxStreams: 1000,
        welcome: () => ({
          request: (stream, headers) => {
            came.push(String(headers[':path']))
            if (came.length === 1) first()
            stream.respond({ ':status': 200 }, true)
          },
        }),
      },
    ),
  )
  const [flood, other] = await Promise.all([RawClient.connect(path), RawClient.connect(path)])
  clients.push(flood, other)
  first = () => other.request(1, { ':path': '/other' })
  for (let n = 0; n < 800; n++) flood.request(1 + 2 * n, { ':path': '/flood' })
  await flood.until(() => flood.headers.has(1599))
  expect(came.indexOf('/other')).toBeGreaterThan(0)
  expect(came.indexOf('/other')).toBeLessThan(400)
  expect(came).toHaveLength(801)
})

describe('a client that does not read', () => {
  const size = 8192
  const limits = { connections: 10, calls: 1000, bytes: 40 * size }
  const path = join(folder, 'server')
  const streams: Stream[] = []
  listeners.push(
    listen(
      { unix: path },
      {
        maxStreams: 1000,
        shares: new Shares({ address: limits, identity: limits, all: { ...limits, bytes: 60 * size } }),
        welcome: () => ({
          request: (stream, headers) => {
            streams.push(stream)
            stream.respond({ ':status': 200 })
            stream.end(Buffer.alloc(headers[':path'] === '/small' ? 8 : size))
          },
        }),
      },
    ),
  )
  const connect = async (initialWindowSize: number) => {
    const client = await RawClient.connect(path, { settings: { initialWindowSize } })
    clients.push(client)
    return client
  }

  test('has only as many calls ended as needed, and no other client has any', async () => {
    const modest = await connect(0)
    for (let n = 0; n < 10; n++) modest.request(1 + 2 * n)
    await modest.until(() => modest.frames.filter((line) => line.startsWith('HEADERS')).length === 10)
    const greedy = await connect(0)
    for (let n = 0; n < 100; n++) greedy.request(1 + 2 * n)
    const cut = () => greedy.frames.filter((line) => line.endsWith('ENHANCE_YOUR_CALM')).length
    await greedy.until(() => cut() === 60)
    const third = await connect(65_535)
    third.request(1, { ':path': '/small' })
    await third.until(() => third.frames.includes('DATA 1 end'))
    expect(modest.frames.some((line) => line.startsWith('RST_STREAM'))).toBe(false)
    expect(streams.filter(({ closed }) => !closed).reduce((sum, { charged }) => sum + charged, 0)).toBeLessThanOrEqual(60 * size)
  })

  test('but is slow gets everything', async () => {
    const slow = await connect(0)
    slow.frame(frameType.WINDOW_UPDATE, 0, 0, Buffer.from([0, 0x10, 0, 0]))
    for (let n = 0; n < 30; n++) slow.request(1 + 2 * n, {}, flag.END_HEADERS | flag.END_STREAM)
    await slow.until(() => slow.frames.filter((line) => line.startsWith('HEADERS')).length === 30)
    slow.settings({ initialWindowSize: 4096 })
    await slow.until(() => [...slow.received.values()].filter((bytes) => bytes === 4096).length === 30)
    slow.settings({ initialWindowSize: 0 })
    slow.settings({ initialWindowSize: size })
    await slow.until(() => slow.frames.filter((line) => line.startsWith('DATA') && line.endsWith('end')).length === 30)
    expect([...slow.received.values()].every((bytes) => bytes === size)).toBe(true)
  })
})
