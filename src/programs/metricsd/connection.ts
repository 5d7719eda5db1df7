/** One client: its requests one after another, within bounds of size and time. */
import { messageOf } from '../../wire/error-message.ts'
import { parseRequestHead } from '../../wire/http/request-head.ts'
import { type Answering, answer, encoded, type Reply, refusal } from './answer.ts'

/** What a connection uses of its socket. */
export interface Wire {
  write(bytes: Uint8Array): number
  end(): void
  terminate(): void
}

/** Bounds of a connection; times in milliseconds. */
export interface Bounds {
  /** Bytes of a head, and of what is sent before the reply to it. */
  readonly head: number
  /** From the connection to the end of its first head. */
  readonly greeting: number
  readonly idle: number
  readonly reply: number
  /** After this time the next reply ends the connection. */
  readonly life: number
}

/** The bounds of a client. */
export const usualBounds: Bounds = { head: 8192, greeting: 10_000, idle: 120_000, reply: 30_000, life: 600_000 }

/** A connection of one client. */
export class Connection {
  /** Whether the client has proved itself, by certificate or token. */
  isAdmitted = false
  #certified = false
  readonly #wire: Wire
  readonly #answering: Answering
  readonly #bounds: Bounds
  readonly #opened = performance.now()
  #received = Buffer.alloc(0)
  #unsent: Uint8Array | undefined
  #isBusy = false
  #isEnding = false
  #deadline: ReturnType<typeof setTimeout>

  constructor(wire: Wire, answering: Answering, bounds: Bounds) {
    this.#wire = wire
    this.#answering = answering
    this.#bounds = bounds
    this.#deadline = this.#until(bounds.greeting)
  }

  /** The handshake is over. */
  greeted(certified: boolean): void {
    this.#certified = certified
    this.isAdmitted ||= certified
  }

  receive(chunk: Uint8Array): void {
    if (this.#isEnding) return
    this.#received = Buffer.concat([this.#received, chunk])
    if (this.#received.length > this.#bounds.head && (this.#isBusy || this.#headEnd() < 0))
      this.#reply(refusal(431, `a request has at most ${this.#bounds.head} bytes`))
    else this.#next()
  }

  /** The socket takes bytes again. */
  drained(): void {
    if (this.#unsent) this.#send(this.#unsent)
  }

  gone(): void {
    clearTimeout(this.#deadline)
    this.#isEnding = true
    this.#unsent = undefined
  }

  #headEnd(): number {
    return this.#received.subarray(0, this.#bounds.head).indexOf('\r\n\r\n')
  }

  #next(): void {
    const end = this.#headEnd()
    if (this.#isBusy || this.#isEnding || end < 0) return
    const text = this.#received.toString('latin1', 0, end)
    this.#received = this.#received.subarray(end + 4)
    this.#isBusy = true
    this.#restart(this.#bounds.reply)
    this.#answer(text).catch((error) => {
      this.#answering.log.error('reply failed', { error })
      this.#wire.terminate()
    })
  }

  async #answer(text: string): Promise<void> {
    let head: ReturnType<typeof parseRequestHead>
    try {
      head = parseRequestHead(text)
    } catch (error) {
      this.#reply(refusal(400, messageOf(error)))
      return
    }
    const reply = await answer(head, this.#certified, this.#answering)
    if (reply.status !== 401 && reply.status !== 400) this.isAdmitted = true
    const isOld = performance.now() - this.#opened > this.#bounds.life
    this.#reply(isOld ? { ...reply, close: true } : reply, head.method === 'HEAD')
  }

  #reply(reply: Reply, head = false): void {
    if (this.#isEnding) return
    this.#isEnding = reply.close
    this.#restart(this.#bounds.reply)
    this.#send(encoded(reply, head))
  }

  #send(bytes: Uint8Array): void {
    const sent = Math.max(0, this.#wire.write(bytes))
    this.#unsent = sent < bytes.length ? bytes.subarray(sent) : undefined
    if (this.#unsent) return
    if (this.#isEnding) {
      this.#wire.end()
      return
    }
    this.#isBusy = false
    this.#restart(this.#bounds.idle)
    this.#next()
  }

  #restart(time: number): void {
    clearTimeout(this.#deadline)
    this.#deadline = this.#until(time)
  }

  #until(time: number): ReturnType<typeof setTimeout> {
    return setTimeout(() => this.#wire.terminate(), time)
  }
}
