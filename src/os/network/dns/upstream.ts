/**
 * The servers that know more. The first that is well is asked; one that does not answer is passed over until it answers
 * a question of ours again, which it is asked now and then. An answer that is a refusal is only taken when no other server
 * has a better one.
 */
import { createSocket } from 'node:dgram'
import { connect } from 'node:net'
import { LengthReader, withLength } from './framing.ts'
import { isTruncated, queryFor, readCode, readQuestion, responseCode } from './message.ts'

/** Milliseconds: one attempt; all of them, which is less than what those who ask us wait (5 seconds, as resolv.conf(5) has it); between questions to a server that is ill. */
export interface Patience {
  readonly attempt: number
  readonly whole: number
  readonly probe: number
}

const usual: Patience = { attempt: 2_000, whole: 4_500, probe: 5_000 }
const failuresToIll = 3

/** The root's name servers: asked of a server that is ill, any answer will do. */
const probe = Buffer.from('000001000001000000000000' + '00' + '00020001', 'hex')

/** Where a server is: `10.0.0.53`, or with a port `10.0.0.53:5353`, `[fd00::1]:5353`. */
function placeOf(server: string): { host: string; port: number } {
  const [, six, four, port] = /^(?:\[([^\]]+)\]|([^:]+)):(\d+)$/.exec(server) ?? []
  return port ? { host: six ?? four ?? '', port: Number(port) } : { host: server, port: 53 }
}

/** The servers to ask, in the order they were given. */
export class Upstreams {
  readonly #failures = new Map<string, number>()
  readonly #probes = new Map<string, ReturnType<typeof setTimeout>>()
  #servers: readonly string[] = []
  #changed = () => {}

  constructor(private readonly patience = usual) {}

  /** Asks these servers from now on; says whether they are others than before. */
  use(servers: readonly string[]): boolean {
    if (Bun.deepEquals(servers, this.#servers)) return false
    this.#servers = [...servers]
    this.#failures.clear()
    for (const timer of this.#probes.values()) clearTimeout(timer)
    this.#probes.clear()
    return true
  }

  /** Whether a server answers. */
  healthy(server: string): boolean {
    return (this.#failures.get(server) ?? 0) < failuresToIll
  }

  /** Calls back when a server falls ill or is well again. */
  onHealth(changed: () => void): void {
    this.#changed = changed
  }

  /** The best answer to a query that is to be had, undefined when nobody answers in time. */
  async ask(query: Uint8Array): Promise<Buffer | undefined> {
    const end = performance.now() + this.patience.whole
    const order = [...this.#servers].sort((a, b) => Number(!this.healthy(a)) - Number(!this.healthy(b)))
    let refusal: Buffer | undefined
    for (const server of order) {
      const left = end - performance.now()
      if (left <= 0) break
      try {
        const answer = await this.#askOne(server, query, Math.min(left, this.patience.attempt))
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
      askUdp(server, probe, this.patience.attempt).then(
        () => noted(true),
        () => noted(false),
      )
    }, this.patience.probe)
    timer.unref()
    this.#probes.set(server, timer)
  }
}

/** Asks over UDP; an answer must come from the server and repeat id and question. */
function askUdp(server: string, query: Uint8Array, timeout: number): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>()
  const { host, port } = placeOf(server)
  const socket = createSocket(host.includes(':') ? 'udp6' : 'udp4')
  // An id nobody can guess, from a port the kernel chooses.
  const own = queryFor(query, unguessable())
  const { id, key } = readQuestion(own)
  const timer = setTimeout(() => reject(new Error(`name server ${server}: no answer within ${Math.round(timeout)} ms`)), timeout)
  socket.on('error', reject)
  socket.on('message', (answer) => {
    try {
      const question = readQuestion(answer)
      if (question.id === id && question.key === key && ((answer[2] ?? 0) & 0x80) !== 0) resolve(Buffer.from(answer))
    } catch {
      // Not an answer to this question: the right one may still come.
    }
  })
  // The callback is also told when there is no route to the server.
  const connected = (error?: Error) => (error ? reject(error) : socket.send(own))
  socket.connect(port, host, connected)
  return promise.finally(() => {
    clearTimeout(timer)
    socket.close()
  })
}

/** Asks over TCP: two bytes of length before each message (RFC 1035 §4.2.2). */
function askTcp(server: string, query: Uint8Array, timeout: number): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>()
  const own = queryFor(query, unguessable())
  const { id, key } = readQuestion(own)
  const socket = connect(placeOf(server))
  const reader = new LengthReader((answer) => {
    try {
      const question = readQuestion(answer)
      if (question.id === id && question.key === key) resolve(Buffer.from(answer))
      else reject(new Error(`name server ${server}: an answer to something else`))
    } catch (error) {
      reject(error)
    }
  })
  const timer = setTimeout(() => reject(new Error(`name server ${server}: no answer within ${Math.round(timeout)} ms`)), timeout)
  socket.on('connect', () => socket.write(withLength(own)))
  socket.on('data', (chunk: Buffer) => reader.push(chunk))
  socket.on('error', reject)
  socket.on('close', () => reject(new Error(`name server ${server}: connection closed`)))
  return promise.finally(() => {
    clearTimeout(timer)
    socket.destroy()
  })
}

const unguessable = (): number => crypto.getRandomValues(new Uint16Array(1))[0]!
