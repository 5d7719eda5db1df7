import { afterEach, describe, expect, jest, test } from 'bun:test'
import { createSocket } from 'node:dgram'
import * as fc from 'fast-check'
import { LengthReader, withLength } from '../../../../src/os/network/dns/framing.ts'
import {
  aged,
  answerAddresses,
  answerWith,
  queryFor,
  readCode,
  readExtension,
  readLifetime,
  readQueryName,
  readQuestion,
  truncated,
} from '../../../../src/os/network/dns/message.ts'
import { Resolver } from '../../../../src/os/network/dns/resolver.ts'
import { DecodeError } from '../../../../src/wire/decode-error.ts'
import { freePort } from '../../../support/free-port.ts'

/** A query for the A record of example.com with an OPT record of 1232 bytes, as dig sends it. */
const query = Buffer.from(
  `12340100000100000000000107${Buffer.from('example').toString('hex')}03636f6d000001000100002904d0000000000000`,
  'hex',
)
/** An answer with one A record that may be kept for 60 seconds. */
const answer = Buffer.from(
  `12348180000100010000000007${Buffer.from('example').toString('hex')}03636f6d0000010001c00c000100010000003c00045db8d822`,
  'hex',
)

test('questions that differ in letter case are equal', () => {
  const upper = Buffer.from(query)
  upper.write('EXAMPLE', 13)
  expect(readQuestion(upper).key).toBe(readQuestion(query).key)
  expect(readQuestion(query)).toMatchObject({ id: 0x1234, end: 29 })
  const typed = (type: number) => {
    const copy = Buffer.from(query)
    copy.writeUInt16BE(type, 25)
    return readQuestion(copy).key
  }
  expect(typed(65)).not.toBe(typed(97))
})

test('an answer is cached for its shortest TTL, and ages', () => {
  expect(readLifetime(answer)).toBe(60)
  const old = aged(answer, 7, 20)
  expect(old.readUInt16BE(0)).toBe(7)
  expect(readLifetime(old)).toBe(40)
})

test("the OPT record holds the client's payload size", () => {
  expect(readExtension(query)).toEqual({ payload: 1232, version: 0, flags: 0 })
  expect(readExtension(answer)).toBeUndefined()
  expect(truncated(answer).readUInt8(2) & 2).toBe(2)
  expect(answerWith(query, 2).readUInt8(3) & 15).toBe(2)
})

test('the parser rejects any malformed message', () => {
  fc.assert(
    fc.property(
      fc.oneof(
        fc.uint8Array({ maxLength: 80 }),
        fc.nat(answer.length).map((end) => Uint8Array.from(answer.subarray(0, end))),
      ),
      (bytes) => {
        for (const parse of [
          readQuestion,
          readLifetime,
          readExtension,
          readQueryName,
          (any: Uint8Array) => queryFor(any, 7),
          (any: Uint8Array) => aged(any, 1, 2),
        ])
          try {
            parse(bytes)
          } catch (error) {
            if (!(error instanceof DecodeError)) throw error
          }
      },
    ),
  )
})

test('an unanswerable query gets a response code, never silence', async () => {
  const resolver = new Resolver()
  expect((await resolver.answer(Buffer.from('junk'))).readUInt8(3) & 15).toBe(1)
  expect((await resolver.answer(query)).readUInt8(3) & 15).toBe(2) // there is no server to ask
})

test('known names are answered locally, for every address type', async () => {
  expect(readQueryName(query)).toEqual({ name: 'example.com', type: 1, class: 1 })
  expect(readLifetime(answerAddresses(query, [Uint8Array.of(10, 0, 0, 5)], 10))).toBe(10)
  const resolver = new Resolver()
  resolver.know(new Map([['example.com', [Uint8Array.of(10, 0, 0, 5)]]]))
  const reply = await resolver.answer(query)
  expect([reply.readUInt16BE(6), ...reply.subarray(-4)]).toEqual([1, 10, 0, 0, 5])
  const six = Buffer.from(query)
  six.writeUInt16BE(28, 25)
  expect((await resolver.answer(six)).readUInt16BE(6)).toBe(0)
  resolver.know(new Map())
  expect((await resolver.answer(query)).readUInt8(3) & 15).toBe(2)
})

/** A test server: answers with the result of `respond`; undefined is silence. TCP queries go to `stream`. */
async function upstream(respond: (query: Buffer) => Uint8Array | undefined, stream?: (query: Buffer) => Uint8Array) {
  const heard: Buffer[] = []
  let came = Promise.withResolvers<void>()
  // One that the system chooses for UDP may be in use over TCP.
  const udp = await Bun.udpSocket({
    hostname: '127.0.0.1',
    port: stream ? await freePort() : 0,
    socket: {
      data(socket, bytes, port, address) {
        const query = Buffer.from(bytes)
        heard.push(query)
        came.resolve()
        came = Promise.withResolvers()
        const reply = respond(query)
        if (reply) socket.send(reply, port, address)
      },
    },
  })
  const tcp = stream
    ? Bun.listen({
        hostname: '127.0.0.1',
        port: udp.port,
        socket: { data: (socket, bytes) => void socket.write(withLength(stream(Buffer.from(bytes.subarray(2))))) },
      })
    : undefined
  const close = () => {
    udp.close()
    tcp?.stop(true)
  }
  /** Resolves once so many questions have come. */
  const requested = async (count: number) => {
    while (heard.length < count) await came.promise
  }
  return { server: `127.0.0.1:${udp.port}`, heard, requested, close }
}

const address =
  (last: number, lifetime = 60) =>
  (query: Buffer) =>
    answerAddresses(query, [Uint8Array.of(10, 0, 0, last)], lifetime)
const plain = (name: string, { id = 7, type = 1, flags = 0x0100 } = {}) => {
  const labels = name.split('.').map((label) => Buffer.concat([Buffer.of(label.length), Buffer.from(label)]))
  const requested = Buffer.concat([Buffer.alloc(12), ...labels, Buffer.of(0, type >> 8, type & 255, 0, 1)])
  requested.writeUInt16BE(id, 0)
  requested.writeUInt16BE(flags, 2)
  requested.writeUInt16BE(1, 4)
  return requested
}
const withOpt = (requested: Buffer, { flags = 0, version = 0, options = '' } = {}) => {
  const extended = Buffer.concat([
    requested,
    Buffer.from('0000291000', 'hex'),
    Buffer.of(0, version, flags >> 8, flags & 255, 0, options.length / 2),
    Buffer.from(options, 'hex'),
  ])
  extended.writeUInt16BE(1, 10)
  return extended
}

describe('the resolver', () => {
  afterEach(() => void jest.useRealTimers())

  test('sends equal queries upstream once, and each client gets its own id and letter case', async () => {
    let now = 0
    const up = await upstream(address(1))
    const resolver = new Resolver(() => now)
    resolver.use([up.server])
    const [first, second] = await Promise.all([resolver.answer(plain('a.example')), resolver.answer(plain('A.eXample', { id: 9 }))])
    expect([first.readUInt16BE(0), second.readUInt16BE(0)]).toEqual([7, 9])
    expect(second.includes('eXample')).toBe(true)
    now = 20
    for (let turn = 0; turn < 2; turn++) {
      const later = resolver.udp(plain('a.EXAMPLE', { id: 11 })) // at once: it is known
      expect(later).toBeInstanceOf(Buffer)
      expect([(later as Buffer).readUInt16BE(0), readLifetime(later as Buffer), (later as Buffer).includes('EXAMPLE')]).toEqual([
        11,
        40,
        true,
      ])
    }
    expect(up.heard).toHaveLength(1)
    now = 61
    await resolver.answer(plain('a.example'))
    expect(up.heard).toHaveLength(2)
    up.close()
  })

  test('caches negative answers for as long as the zone allows', async () => {
    let now = 0
    const soa = Buffer.from('c00c0006000100000e1000160000' + '00000001000000020000000300000004' + '0000003c', 'hex')
    const up = await upstream((query) => {
      const none = Buffer.concat([answerWith(query, 3), soa])
      none.writeUInt16BE(1, 8)
      return none
    })
    const resolver = new Resolver(() => now)
    resolver.use([up.server])
    for (now of [0, 59]) expect(readCode(await resolver.answer(plain('gone.example')))).toBe(3)
    expect(up.heard).toHaveLength(1)
    now = 61
    await resolver.answer(plain('gone.example'))
    expect(up.heard).toHaveLength(2)
    up.close()
  })

  test('forwards DNSSEC bits, caches such answers separately, and drops other EDNS options', async () => {
    const up = await upstream(address(1))
    const resolver = new Resolver()
    resolver.use([up.server])
    await resolver.answer(plain('sec.example'))
    await resolver.answer(withOpt(plain('sec.example', { flags: 0x0130 }), { flags: 0x8000, options: '000a00080102030405060708' }))
    await resolver.answer(withOpt(plain('sec.example', { flags: 0x0130 }), { flags: 0x8000, options: '000a00081112131415161718' }))
    expect(up.heard.map((requested) => [requested.readUInt16BE(2), readExtension(requested)])).toEqual([
      [0x0100, undefined],
      [0x0130, { payload: 1232, version: 0, flags: 0x8000 }],
    ])
    const bad = await resolver.answer(withOpt(plain('sec.example'), { version: 1 }))
    expect([readCode(bad), bad.readUInt16BE(10), bad.at(-6)]).toEqual([0, 1, 1]) // 16 = BADVERS
    up.close()
  })

  test('falls back to the next server after silence, forgery or an error, and reports unhealthy servers', async () => {
    let recorded = 0
    const forged = await upstream((query) => {
      const other = Buffer.from(address(66)(query))
      other.writeUInt16BE(other.readUInt16BE(0) ^ 1, 0)
      return other
    })
    const refusing = await upstream((query) => answerWith(query, 5))
    const good = await upstream(address(1))
    const resolver = new Resolver()
    resolver.onHealth(() => recorded++)
    resolver.use([forged.server, refusing.server, good.server])
    const well = new Resolver()
    well.use([good.server])
    jest.useFakeTimers()
    const replies = Promise.all(['a', 'b', 'c'].map((name) => resolver.answer(plain(name))))
    await forged.requested(3)
    await well.answer(plain('d')) // what was forged is there by now
    jest.advanceTimersByTime(2_000)
    expect((await replies).map((reply) => reply.at(-1))).toEqual([1, 1, 1])
    expect([resolver.healthy(forged.server), resolver.healthy(good.server), recorded]).toEqual([false, true, 1])
    good.close()
    resolver.use([refusing.server])
    expect(readCode(await resolver.answer(plain('two.example')))).toBe(5)
    for (const each of [forged, refusing]) each.close()
  })

  test('skips a dead server, and uses it again after recovery', async () => {
    let dead = false
    let changes = Promise.withResolvers<void>()
    const first = await upstream((query) => (dead ? undefined : address(1)(query)))
    const second = await upstream(address(2))
    const resolver = new Resolver()
    resolver.onHealth(() => changes.resolve())
    resolver.use([first.server, second.server])
    let name = 0
    const requested = async () => (await resolver.answer(plain(`n${name++}.example`))).at(-1)
    expect(await requested()).toBe(1)
    dead = true
    jest.useFakeTimers()
    const replies = Promise.all([requested(), requested(), requested()])
    await first.requested(4)
    jest.advanceTimersByTime(2_000)
    expect(await replies).toEqual([2, 2, 2])
    expect(resolver.healthy(first.server)).toBe(false)
    expect(await requested()).toBe(2)
    changes = Promise.withResolvers<void>()
    dead = false
    jest.advanceTimersByTime(5_000)
    await changes.promise // its own probe reports this
    expect(resolver.healthy(first.server)).toBe(true)
    expect(await requested()).toBe(1)
    resolver.use([])
    first.close()
    second.close()
  })

  test('retries truncated answers over TCP, and truncates its own', async () => {
    const many = (query: Buffer) =>
      answerAddresses(
        query,
        Array.from({ length: 100 }, (_, n) => Uint8Array.of(10, 0, 1, n)),
        60,
      )
    const up = await upstream((query) => truncated(many(query)), many)
    const resolver = new Resolver()
    resolver.use([up.server])
    const port = await freePort()
    await resolver.listen([`127.0.0.1:${port}`])
    const whole = await resolver.answer(plain('big.example'))
    expect(whole.readUInt16BE(6)).toBe(100)
    const short = await resolver.udp(plain('big.example'))
    expect([short.readUInt16BE(6), short[2]! & 2]).toEqual([0, 2])
    expect((await resolver.udp(withOpt(plain('big.example')))).length).toBeGreaterThan(512)
    // Two questions in one piece, and the bytes of a third.
    const replies = Promise.withResolvers<number[]>()
    const got: number[] = []
    const reader = new LengthReader((reply) => {
      got.push(reply.readUInt16BE(0))
      if (got.length === 2) replies.resolve(got)
    })
    const asker = await Bun.connect({ hostname: '127.0.0.1', port, socket: { data: (_, bytes) => reader.push(Buffer.from(bytes)) } })
    asker.write(Buffer.concat([withLength(plain('big.example', { id: 1 })), withLength(plain('big.example', { id: 2 })), Buffer.of(0)]))
    expect((await replies.promise).sort()).toEqual([1, 2])
    asker.end()
    await resolver.listen([])
    up.close()
  })

  test('survives any response of a server', async () => {
    const lies: Uint8Array[] = []
    const up = await upstream((query) => {
      const lie = lies.shift() ?? new Uint8Array()
      return Buffer.concat([query.subarray(0, 2), Buffer.of(0x81, 0x80), lie])
    })
    const looping = await upstream((query) => {
      // A record whose name points at itself.
      const answer = Buffer.concat([answerWith(query, 0), Buffer.from('c01dc01d000100010000003c000401020304', 'hex')])
      answer.writeUInt16BE(1, 6)
      return answer
    })
    const cut = await upstream((query) => {
      // The record count is one too large.
      const answer = Buffer.from(address(1)(query))
      answer.writeUInt16BE(1, 10)
      return answer
    })
    const resolver = new Resolver()
    resolver.use([cut.server])
    expect(readCode(await resolver.answer(plain('cut.example')))).toBe(2)
    resolver.use([looping.server])
    expect((await resolver.answer(plain('loop.example'))).length).toBeGreaterThan(12)
    resolver.use([up.server])
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 60 }), (bytes) => {
        const answer = resolver.udp(Buffer.from(bytes))
        if (answer instanceof Promise) void answer
        else expect(answer.length).toBeGreaterThanOrEqual(12)
      }),
    )
    up.close()
    looping.close()
    cut.close()
  })
})

test('the resolver answers over UDP on its address', async () => {
  const resolver = new Resolver()
  const port = await freePort()
  await resolver.listen([`127.0.0.1:${port}`])
  const socket = createSocket('udp4')
  const reply = new Promise<Buffer>((resolve) => socket.once('message', resolve))
  socket.send(query, port, '127.0.0.1')
  expect((await reply).readUInt16BE(0)).toBe(0x1234)
  socket.close()
  await resolver.listen([])
})
