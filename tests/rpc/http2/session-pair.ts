/** Two ends of a connection in one process: what one writes the other receives at once. */
import type { Socket } from '../../../src/rpc/http2/output.ts'
import { Session, type SessionOptions } from '../../../src/rpc/http2/session.ts'

/** A connection, and what its server did with its socket. */
export interface SessionPair {
  readonly client: Session
  readonly server: Session
  readonly counts: { writes: number; pauses: number; resumes: number }
}

/** Connects a client to a server; both have received the settings of the other. */
export async function sessionPair(options: Omit<SessionOptions, 'side'>): Promise<SessionPair> {
  const counts = { writes: 0, pauses: 0, resumes: 0 }
  const ends: { client?: Session; server?: Session } = {}
  const socket = (write: (bytes: Buffer) => void): Socket => {
    const nothing = () => {}
    return {
      fd: -1,
      write(bytes, from, length) {
        write(Buffer.from(bytes.subarray(from, from + length)))
        return length
      },
      end: nothing,
      shutdown: nothing,
      terminate: nothing,
      pause: () => void counts.pauses++,
      resume: () => void counts.resumes++,
      ref: nothing,
      unref: nothing,
    }
  }
  const toClient = (bytes: Buffer) => {
    counts.writes++
    ends.client?.receive(bytes)
  }
  const server = new Session(socket(toClient), { ...options, side: 'server' })
  const client = new Session(
    socket((bytes) => server.receive(bytes)),
    { side: 'client' },
  )
  Object.assign(ends, { client, server })
  await new Promise<void>((resolve) => client.whenSettled(resolve))
  await Bun.sleep(0)
  Object.assign(counts, { writes: 0, pauses: 0, resumes: 0 })
  return { client, server, counts }
}
