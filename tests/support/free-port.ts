/**
 * Ports for servers that tests start by number. They lie below those the system gives to outgoing connections and to servers without
 * a number, so nothing takes one between the look and its use; each process of the suite begins elsewhere.
 */
import { createSocket } from 'node:dgram'
import { createServer } from 'node:net'

const first = 12_000
const count = 20_000
let next = (process.pid * 101) % count

/** A port that is free on all IPv4 addresses now, over TCP and UDP. Each call gives another one. */
export async function freePort(): Promise<number> {
  for (let tries = 0; tries < count; tries++) {
    const port = first + next
    next = (next + 1) % count
    if ((await isFreeOverTcp(port)) && (await isFreeOverUdp(port))) return port
  }
  throw new Error(`all ports from ${first} to ${first + count - 1} are in use`)
}

function isFreeOverTcp(port: number): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>()
  const server = createServer().once('error', () => resolve(false))
  server.listen(port, '0.0.0.0', () => server.close(() => resolve(true)))
  return promise
}

function isFreeOverUdp(port: number): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>()
  const socket = createSocket('udp4').once('error', () => {
    socket.close()
    resolve(false)
  })
  socket.bind(port, '0.0.0.0', () => socket.close(() => resolve(true)))
  return promise
}
