/**
 * The node's resolver: forwards to upstream servers, keeps what may be kept, answers over UDP and TCP. Equal questions
 * that are under way are asked once. Answers pass byte for byte, so DNSSEC records reach those who asked for them.
 */
import { createSocket, type Socket as UdpSocket } from 'node:dgram'
import { connect, createServer, type Server, type Socket } from 'node:net'
import {
  aged,
  answerAddresses,
  answerWith,
  askedFor,
  isTruncated,
  payloadLimit,
  readLifetime,
  readQuestion,
  responseCode,
  truncated,
} from './message.ts'

const attemptTimeout = 2_000
const maxEntries = 10_000
const maxUnderWay = 1_000
const longestLifetime = 3_600
/** Members come and go: what is told of them is soon asked again. */
const ownLifetime = 10
const tcpIdle = 10_000
const failuresToIll = 3

interface Kept {
  answer: Uint8Array
  since: number
  until: number
}

/** A caching forwarder. */
export class Resolver {
  readonly #kept = new Map<string, Kept>()
  readonly #underWay = new Map<string, Promise<Uint8Array | undefined>>()
  readonly #listeners = new Map<string, { udp: UdpSocket; tcp: Server }>()
  readonly #failures = new Map<string, number>()
  #upstreams: readonly string[] = []
  #names: ReadonlyMap<string, readonly Uint8Array[]> = new Map()
  #healthChanged = () => {}

  /** Seconds of a clock that never goes back. */
  constructor(readonly now: () => number = () => performance.now() / 1000) {}

  /** Forwards to these servers from now on, the first that answers. What was kept from others is forgotten. */
  use(servers: readonly string[]): void {
    if (Bun.deepEquals(servers, this.#upstreams)) return
    this.#upstreams = [...servers]
    this.#kept.clear()
    this.#failures.clear()
  }

  /** Answers these names (lower case) itself from now on, with their addresses as bytes. */
  know(names: ReadonlyMap<string, readonly Uint8Array[]>): void {
    this.#names = names
  }

  /** Whether a server answered when it was last asked. */
  healthy(server: string): boolean {
    return (this.#failures.get(server) ?? 0) < failuresToIll
  }

  /** Calls back when a server falls ill or is well again. */
  onHealth(changed: () => void): void {
    this.#healthChanged = changed
  }

  /** Listens on just these addresses (`127.0.0.53:53`), over UDP and TCP. Rejects when one cannot be bound. */
  async listen(addresses: readonly string[]): Promise<void> {
    for (const [address, { udp, tcp }] of this.#listeners) {
      if (addresses.includes(address)) continue
      udp.close()
      tcp.close()
      this.#listeners.delete(address)
    }
    for (const address of addresses) {
      if (this.#listeners.has(address)) continue
      const colon = address.lastIndexOf(':')
      const host = address.slice(0, colon)
      const port = Number(address.slice(colon + 1))
      const udp = await this.#listenUdp(host, port)
      try {
        this.#listeners.set(address, { udp, tcp: await this.#listenTcp(host, port) })
      } catch (error) {
        udp.close()
        throw error
      }
    }
  }

  /** Answers one query; never rejects. */
  async answer(query: Uint8Array): Promise<Buffer> {
    let question: ReturnType<typeof readQuestion>
    try {
      question = readQuestion(query)
      if (((query[2] ?? 0) & 0x80) !== 0) return answerWith(query, responseCode.formatError)
      if ((((query[2] ?? 0) >> 3) & 15) !== 0) return answerWith(query, responseCode.notImplemented)
    } catch {
      return answerWith(query, responseCode.formatError)
    }
    const own = this.#own(query)
    if (own) return own
    // All after the question (the OPT record with its DNSSEC bit) makes a different answer.
    const key = `${question.flags} ${question.key} ${Buffer.from(query.subarray(question.end)).toString('latin1')}`
    const kept = this.#kept.get(key)
    if (kept && kept.until > this.now()) return aged(kept.answer, question.id, Math.floor(this.now() - kept.since))
    if (kept) this.#kept.delete(key)
    let asked = this.#underWay.get(key)
    if (!asked) {
      if (this.#underWay.size >= maxUnderWay) return answerWith(query, responseCode.serverFailure)
      asked = this.#forward(query).finally(() => this.#underWay.delete(key))
      this.#underWay.set(key, asked)
    }
    const answer = await asked
    if (!answer) return answerWith(query, responseCode.serverFailure)
    this.#keep(key, answer)
    return aged(answer, question.id, 0)
  }

  /** The answer for a name that is known here; one that has no address of the asked kind is answered without any. */
  #own(query: Uint8Array): Buffer | undefined {
    if (this.#names.size === 0) return undefined
    const asked = askedFor(query)
    const addresses = asked && asked.class === 1 ? this.#names.get(asked.name) : undefined
    if (!addresses) return undefined
    const length = asked?.type === 1 ? 4 : asked?.type === 28 ? 16 : 0
    return answerAddresses(
      query,
      addresses.filter((address) => address.length === length),
      ownLifetime,
    )
  }

  #keep(key: string, answer: Uint8Array): void {
    const lifetime = Math.min(longestLifetime, readLifetime(answer))
    if (lifetime <= 0) return
    if (this.#kept.size >= maxEntries) {
      const oldest = this.#kept.keys().next().value
      if (oldest !== undefined) this.#kept.delete(oldest)
    }
    this.#kept.set(key, { answer, since: this.now(), until: this.now() + lifetime })
  }

  /** The first good answer; servers that failed lately are asked last. */
  async #forward(query: Uint8Array): Promise<Uint8Array | undefined> {
    const order = [...this.#upstreams].sort((a, b) => Number(!this.healthy(a)) - Number(!this.healthy(b)))
    for (const server of order) {
      try {
        const answer = await this.#ask(server, query)
        this.#note(server, true)
        return answer
      } catch {
        this.#note(server, false)
      }
    }
    return undefined
  }

  #note(server: string, good: boolean): void {
    const before = this.healthy(server)
    this.#failures.set(server, good ? 0 : (this.#failures.get(server) ?? 0) + 1)
    if (before !== this.healthy(server)) this.#healthChanged()
  }

  async #ask(server: string, query: Uint8Array): Promise<Uint8Array> {
    const answer = await askUdp(server, query)
    return isTruncated(answer) ? askTcp(server, query) : answer
  }

  #listenUdp(host: string, port: number): Promise<UdpSocket> {
    const { promise, resolve, reject } = Promise.withResolvers<UdpSocket>()
    const socket = createSocket(host.includes(':') ? 'udp6' : 'udp4')
    socket.once('error', reject)
    socket.on('message', (query, from) => {
      void this.answer(query).then((answer) => {
        const fits = answer.length <= limitOf(query)
        socket.send(fits ? answer : truncated(answer), from.port, from.address, () => {})
      })
    })
    socket.bind(port, host, () => {
      socket.off('error', reject)
      socket.on('error', () => {})
      resolve(socket)
    })
    return promise
  }

  #listenTcp(host: string, port: number): Promise<Server> {
    const { promise, resolve, reject } = Promise.withResolvers<Server>()
    const server = createServer((socket) => serveTcp(socket, (query) => this.answer(query)))
    server.once('error', reject)
    server.listen(port, host, () => {
      server.off('error', reject)
      server.on('error', () => {})
      resolve(server)
    })
    return promise
  }
}

function limitOf(query: Uint8Array): number {
  try {
    return payloadLimit(query)
  } catch {
    return 512
  }
}

/** Asks over UDP; an answer must come from the server and repeat id and question. */
function askUdp(server: string, query: Uint8Array): Promise<Uint8Array> {
  const { promise, resolve, reject } = Promise.withResolvers<Uint8Array>()
  const socket = createSocket(server.includes(':') ? 'udp6' : 'udp4')
  const own = Buffer.from(query)
  // An id nobody can guess, from a port the kernel chooses.
  crypto.getRandomValues(own.subarray(0, 2))
  const { id, key } = readQuestion(own)
  const timer = setTimeout(() => reject(new Error(`name server ${server}: no answer within ${attemptTimeout} ms`)), attemptTimeout)
  socket.on('error', reject)
  socket.on('message', (answer) => {
    try {
      const question = readQuestion(answer)
      if (question.id === id && question.key === key && ((answer[2] ?? 0) & 0x80) !== 0) resolve(Uint8Array.from(answer))
    } catch {
      // Not an answer to this question: the right one may still come.
    }
  })
  // The callback is also told when there is no route to the server.
  const connected = (error?: Error) => (error ? reject(error) : socket.send(own))
  socket.connect(53, server, connected)
  return promise.finally(() => {
    clearTimeout(timer)
    socket.close()
  })
}

/** Asks over TCP: two bytes of length before each message (RFC 1035 §4.2.2). */
function askTcp(server: string, query: Uint8Array): Promise<Uint8Array> {
  const { promise, resolve, reject } = Promise.withResolvers<Uint8Array>()
  const socket = connect({ host: server, port: 53, timeout: attemptTimeout })
  const reader = new LengthReader(resolve)
  socket.on('connect', () => socket.write(withLength(query)))
  socket.on('data', (chunk: Buffer) => reader.push(chunk))
  socket.on('timeout', () => reject(new Error(`name server ${server}: no answer within ${attemptTimeout} ms`)))
  socket.on('error', reject)
  socket.on('close', () => reject(new Error(`name server ${server}: connection closed`)))
  return promise.finally(() => socket.destroy())
}

function serveTcp(socket: Socket, answer: (query: Uint8Array) => Promise<Buffer>): void {
  socket.setTimeout(tcpIdle, () => socket.destroy())
  socket.on('error', () => socket.destroy())
  const reader = new LengthReader((query) => {
    void answer(query).then((reply) => socket.writable && socket.write(withLength(reply)))
  })
  socket.on('data', (chunk: Buffer) => reader.push(chunk))
}

function withLength(message: Uint8Array): Buffer {
  const framed = Buffer.alloc(message.length + 2)
  framed.writeUInt16BE(message.length, 0)
  framed.set(message, 2)
  return framed
}

/** Cuts a stream into messages; holds no more than one message and what came after it. */
class LengthReader {
  #held = Buffer.alloc(0)
  constructor(readonly message: (bytes: Uint8Array) => void) {}

  push(chunk: Buffer): void {
    this.#held = Buffer.concat([this.#held, chunk])
    while (this.#held.length >= 2) {
      const length = this.#held.readUInt16BE(0)
      if (this.#held.length < 2 + length) return
      this.message(Uint8Array.from(this.#held.subarray(2, 2 + length)))
      this.#held = this.#held.subarray(2 + length)
    }
  }
}
