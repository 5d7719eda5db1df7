/** The configuration socket: connections of local programs, each a stream of get and set requests. */
import { closeSync } from 'node:fs'
import { acceptUnix } from '../../linux/net/unix-listener.ts'
import { type Polled, readable, readInto, writable, writeFrom } from '../../linux/poll.ts'
import { DecodeError } from '../../wire/decode-error.ts'
import { failedWith } from '../../wire/errno.ts'
import { messageOf } from '../../wire/error-message.ts'
import { type DeviceChange, readSet } from '../../wire/wireguard/uapi.ts'

/** Bytes of a request that are kept, and connections at a time. */
const maxRequest = 4 << 20
const maxConnections = 16
const errorNumber = { EINVAL: 22, EIO: 5 } as const

/** What requests act on. */
export interface Configured {
  get(): string
  /** Throws SystemError for a port or mark that the kernel refuses. */
  set(change: DeviceChange): void
}

interface Connection {
  readonly polled: Polled
  received: string
  sending: Buffer
}

/** The connections of a listening socket. */
export class ControlSocket {
  readonly #listener: Polled
  readonly #connections = new Set<Connection>()
  readonly #buffer = Buffer.alloc(1 << 16)
  readonly #target: Configured

  constructor(listener: number, target: Configured) {
    this.#listener = { fd: listener, events: readable, happened: 0 }
    this.#target = target
  }

  /** What to wait for. */
  get polled(): Polled[] {
    this.#listener.events = this.#connections.size < maxConnections ? readable : 0
    for (const { polled, sending } of this.#connections) polled.events = sending.length > 0 ? writable : readable
    return [this.#listener, ...[...this.#connections].map(({ polled }) => polled)]
  }

  /** Serves what happened. */
  serve(): void {
    for (const connection of [...this.#connections]) {
      if (connection.polled.happened === 0) continue
      if (!this.#advance(connection)) {
        closeSync(connection.polled.fd)
        this.#connections.delete(connection)
      }
    }
    if (this.#listener.happened === 0) return
    const fd = acceptUnix(this.#listener.fd)
    if (fd !== undefined) this.#connections.add({ polled: { fd, events: readable, happened: 0 }, received: '', sending: Buffer.alloc(0) })
  }

  /** Reads and answers; false when the connection is over. */
  #advance(connection: Connection): boolean {
    try {
      if (connection.sending.length > 0) return this.#send(connection)
      const count = readInto(connection.polled.fd, this.#buffer, 0, this.#buffer.length)
      if (count === 0) return false
      connection.received += this.#buffer.toString('latin1', 0, count ?? 0)
      for (;;) {
        const end = connection.received.indexOf('\n\n')
        if (end < 0) break
        const answer = this.#answer(connection.received.slice(0, end).split('\n'))
        connection.received = connection.received.slice(end + 2)
        connection.sending = Buffer.concat([connection.sending, Buffer.from(answer)])
      }
      return connection.received.length <= maxRequest && this.#send(connection)
    } catch (error) {
      if (failedWith(error, 'ECONNRESET', 'EPIPE')) return false
      throw error
    }
  }

  #send(connection: Connection): boolean {
    if (connection.sending.length === 0) return true
    connection.sending = connection.sending.subarray(writeFrom(connection.polled.fd, connection.sending) ?? 0)
    return true
  }

  #answer([request = '', ...lines]: string[]): string {
    try {
      if (request === 'get=1' && lines.length === 0) return this.#target.get()
      if (request !== 'set=1') return `errno=${errorNumber.EINVAL}\n\n`
      this.#target.set(readSet(lines))
      return 'errno=0\n\n'
    } catch (error) {
      console.error(`wireguard: change refused: ${messageOf(error)}`)
      return `errno=${error instanceof DecodeError ? errorNumber.EINVAL : errorNumber.EIO}\n\n`
    }
  }
}
