/** Serves the resolver over UDP and TCP at one address. */

import { createServer, type Server, type Socket } from 'node:net'
import { background } from '../../../cosi/background.ts'
import type { Logger } from '../../../cosi/log.ts'
import { LengthReader, withLength } from './framing.ts'

/** Idle timeout of a TCP connection, in milliseconds. */
const idle = 10_000
const mostConnections = 256
/** Maximum number of pending queries per connection. Reading resumes when some are answered (RFC 7766 6.2.1). */
const mostUnderWay = 64

/** Answers queries. `udp` limits an answer to the client's UDP payload size. */
export interface Answering {
  udp(query: Buffer): Buffer | Promise<Buffer>
  tcp(query: Buffer): Promise<Buffer>
}

/** Listens until closed. Rejects if the address cannot be bound. */
export async function listen(host: string, port: number, answering: Answering, log: Logger): Promise<{ close(): void }> {
  const tcp = await listenTcp(host, port, answering, log)
  try {
    const udp = await listenUdp(host, port, answering, log)
    return {
      close() {
        udp.close()
        tcp.close()
      },
    }
  } catch (error) {
    tcp.close()
    throw error
  }
}

const listenUdp = (hostname: string, port: number, answering: Answering, log: Logger) =>
  Bun.udpSocket({
    hostname,
    port,
    socket: {
      data(socket, query, fromPort, from) {
        // A lost answer makes the client retry, as usual with UDP.
        const send = (answer: Buffer) => {
          if (!socket.closed) socket.send(answer, fromPort, from)
        }
        const answer = answering.udp(query)
        if (answer instanceof Promise) background(answer.then(send), log, 'answer DNS query failed', { over: 'udp' })
        else send(answer)
      },
      error() {}, // the client disconnected
    },
  })

function listenTcp(host: string, port: number, answering: Answering, log: Logger): Promise<Server> {
  const { promise, resolve, reject } = Promise.withResolvers<Server>()
  const server = createServer((socket) => serve(socket, answering, log))
  server.maxConnections = mostConnections
  server.once('error', reject)
  server.listen(port, host, () => {
    server.off('error', reject)
    server.on('error', () => {})
    resolve(server)
  })
  return promise
}

function serve(socket: Socket, answering: Answering, log: Logger): void {
  let underWay = 0
  socket.setTimeout(idle, () => socket.destroy())
  socket.on('error', () => socket.destroy())
  const reader = new LengthReader((query) => {
    if (++underWay >= mostUnderWay) socket.pause()
    const reply = async () => {
      const answer = await answering.tcp(query).finally(() => {
        if (--underWay < mostUnderWay) socket.resume()
      })
      if (socket.writable) socket.write(withLength(answer))
    }
    background(reply, log, 'answer DNS query failed', { over: 'tcp' })
  })
  socket.on('data', (chunk: Buffer) => reader.push(chunk))
}
