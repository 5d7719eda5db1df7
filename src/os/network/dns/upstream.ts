/**
 * Upstream name servers. A query goes to the first healthy server. A server that does not answer becomes unhealthy and is
 * tried last, until it answers one of the periodic probes. An error response is returned only if no other server has a
 * better answer.
 */

import { createSocket } from 'node:dgram'
import { connect } from 'node:net'
import { within } from '../../../timing/within.ts'
import { splitHostPort } from '../../../wire/host-port.ts'
import { isIPv6 } from '../../../wire/prefix.ts'
import { LengthReader, withLength } from './framing.ts'
import { isTruncated, queryFor, readCode, readQuestion, responseCode } from './message.ts'

/** Timeouts in milliseconds: of one attempt; of a whole query, below the 5 s of resolv.conf(5) after which clients give up; between probes of an unhealthy server. */
export interface Timeouts {
  readonly attempt: number
  readonly whole: number
  readonly probe: number
}

const usual: Timeouts = { attempt: 2_000, whole: 4_500, probe: 5_000 }
const failuresToIll = 3

/** A query for the root's name servers, sent to an unhealthy server. Any answer makes it healthy. */
const probe = Buffer.from('000001000001000000000000' + '00' + '00020001', 'hex')

/** Parses a server address: `10.0.0.53`, or with a port `10.0.0.53:5353`, `[fd00::1]:5353`. */
const placeOf = (server: string) => splitHostPort(server, 53)

/** The upstream servers in configured order. */
export class Upstreams {
  readonly #failures = new Map<string, number>()
  readonly #probes = new Map<string, ReturnType<typeof setTimeout>>()
  #servers: readonly string[] = []
  #changed = () => {}

  constructor(private readonly timeouts = usual) {}

  /** Sets the servers. Returns true if they changed. */
  use(servers: readonly string[]): boolean {
    if (Bun.deepEquals(servers, this.#servers)) return false
    this.#servers = [...servers]
    this.#failures.clear()
    for (const timer of this.#probes.values()) clearTimeout(timer)
    this.#probes.clear()
    return true
  }

  /** Whether a server is healthy. */
  healthy(server: string): boolean {
    return (this.#failures.get(server) ?? 0) < failuresToIll
  }

  /** Registers a callback for changes of a server's health. */
  onHealth(changed: () => void): void {
    this.#changed = changed
  }

  /** The best answer to a query, undefined if no server answers in time. */
  async ask(query: Uint8Array): Promise<Buffer | undefined> {
    const end = performance.now() + this.timeouts.whole
    const order = [...this.#servers].sort((a, b) => Number(!this.healthy(a)) - Number(!this.healthy(b)))
    let refusal: Buffer | undefined
    for (const server of order) {
      const left = end - performance.now()
      if (left <= 0) break
      try {
        const answer = await this.#askOne(server, query, Math.min(left, this.timeouts.attempt))
        this.#note(server, true)
        const code = readCode(answer)
        if (code === responseCode.none || code === responseCode.nameError) return answer
        refusal ??= answer
      } catch {
        this.#note(server, false)
      }
    }
    return refusal
  }

  async #askOne(server: string, query: Uint8Array, timeout: number): Promise<Buffer> {
    const answer = await askUdp(server, query, timeout)
    return isTruncated(answer) ? askTcp(server, query, timeout) : answer
  }

  #note(server: string, good: boolean): void {
    if (!this.#servers.includes(server)) return
    const before = this.healthy(server)
    this.#failures.set(server, good ? 0 : (this.#failures.get(server) ?? 0) + 1)
    if (!this.healthy(server)) this.#probeLater(server)
    if (before !== this.healthy(server)) this.#changed()
  }

  #probeLater(server: string): void {
    if (this.#probes.has(server)) return
    const noted = (good: boolean) => {
      if (this.#probes.get(server) !== timer) return
      this.#probes.delete(server)
      this.#note(server, good)
    }
    const timer = setTimeout(() => {
      askUdp(server, probe, this.timeouts.attempt).then(
        () => noted(true),
        () => noted(false),
      )
    }, this.timeouts.probe)
    timer.unref()
    this.#probes.set(server, timer)
  }
}

/** Rejects unless a server answers a query of any kind. */
export async function answersQueries(server: string, timeout: number): Promise<void> {
  await askUdp(server, probe, timeout)
}

/** Queries over UDP. An answer must come from the server and repeat id and question. */
function askUdp(server: string, query: Uint8Array, timeout: number): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>()
  const { host, port } = placeOf(server)
  const socket = createSocket(isIPv6(host) ? 'udp6' : 'udp4')
  // A random id, from a port the kernel chooses, against spoofed answers.
  const own = queryFor(query, unguessable())
  const { id, key } = readQuestion(own)
  socket.on('error', reject)
  socket.on('message', (answer) => {
    try {
      const question = readQuestion(answer)
      if (question.id === id && question.key === key && ((answer[2] ?? 0) & 0x80) !== 0) resolve(Buffer.from(answer))
    } catch {
      // Not the answer to this query: the right one may still arrive.
    }
  })
  // The callback also reports a missing route to the server.
  const connected = (error?: Error) => (error ? reject(error) : socket.send(own))
  socket.connect(port, host, connected)
  return within(promise, timeout, () => silent(server, timeout)).finally(() => socket.close())
}

/** Queries over TCP: two length bytes precede each message (RFC 1035 §4.2.2). */
function askTcp(server: string, query: Uint8Array, timeout: number): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>()
  const own = queryFor(query, unguessable())
  const { id, key } = readQuestion(own)
  const socket = connect(placeOf(server))
  const reader = new LengthReader((answer) => {
    try {
      const question = readQuestion(answer)
      if (question.id === id && question.key === key) resolve(Buffer.from(answer))
      else reject(new Error(`name server ${server}: answer to a different query`))
    } catch (error) {
      reject(error)
    }
  })
  socket.on('connect', () => socket.write(withLength(own)))
  socket.on('data', (chunk: Buffer) => reader.push(chunk))
  socket.on('error', reject)
  socket.on('close', () => reject(new Error(`name server ${server}: connection closed`)))
  return within(promise, timeout, () => silent(server, timeout)).finally(() => socket.destroy())
}

const silent = (server: string, timeout: number) => new Error(`name server ${server}: no answer within ${Math.round(timeout)} ms`)

function unguessable(): number {
  const [number = 0] = crypto.getRandomValues(new Uint16Array(1))
  return number
}
