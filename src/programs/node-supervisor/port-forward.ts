/** Forwards ports of the host to a node: bytes for TCP, datagrams with their way back for UDP. */

import dgram from 'node:dgram'
import net from 'node:net'

/** One port of the host that leads to one of several equal targets. */
export interface Forward {
  protocol: 'tcp' | 'udp'
  hostAddress: string
  hostPort: number
  /** Called for each connection, so that targets may change. */
  targets(): readonly { address: string; port: number }[]
}

/** A forward that listens. */
export interface Forwarding {
  close(): void
}

const connectTimeout = 2_000
const udpIdleLimit = 60_000
const udpFlowLimit = 1_024

/** Starts a forward; rejects when the port is taken. */
export function forward(spec: Forward): Promise<Forwarding> {
  return spec.protocol === 'tcp' ? forwardTcp(spec) : forwardUdp(spec)
}

function forwardTcp(spec: Forward): Promise<Forwarding> {
  let turn = 0
  const open = new Set<net.Socket>()
  const server = net.createServer({ allowHalfOpen: true, pauseOnConnect: true }, async (client) => {
    open.add(client)
    client.on('close', () => open.delete(client))
    client.on('error', () => client.destroy())
    const targets = spec.targets()
    const first = turn++
    const start = first % Math.max(1, targets.length)
    for (const target of [...targets.slice(start), ...targets.slice(0, start)]) {
      const upstream = await dial(target.address, target.port)
      if (!upstream) continue
      if (client.destroyed) return upstream.destroy()
      open.add(upstream)
      upstream.on('close', () => {
        open.delete(upstream)
        client.destroy()
      })
      upstream.on('error', () => client.destroy())
      client.on('close', () => upstream.destroy())
      client.pipe(upstream)
      upstream.pipe(client)
      client.resume()
      return
    }
    client.destroy()
  })
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen({ host: spec.hostAddress, port: spec.hostPort, exclusive: true }, () => {
      server.removeAllListeners('error')
      server.on('error', () => {})
      resolve({
        close() {
          server.close()
          for (const socket of open) socket.destroy()
        },
      })
    })
  })
}

function dial(address: string, port: number): Promise<net.Socket | undefined> {
  return new Promise((resolve) => {
    const socket = net.connect({ host: address, port, allowHalfOpen: true, noDelay: true })
    const fail = () => {
      socket.destroy()
      resolve(undefined)
    }
    const timer = setTimeout(fail, connectTimeout)
    socket.once('error', () => {
      clearTimeout(timer)
      fail()
    })
    socket.once('connect', () => {
      clearTimeout(timer)
      socket.removeAllListeners('error')
      resolve(socket)
    })
  })
}

function forwardUdp(spec: Forward): Promise<Forwarding> {
  const server = dgram.createSocket(net.isIPv6(spec.hostAddress) ? 'udp6' : 'udp4')
  const flows = new Map<string, { socket: dgram.Socket; timer: ReturnType<typeof setTimeout> }>()
  const drop = (key: string) => {
    const flow = flows.get(key)
    if (!flow) return
    clearTimeout(flow.timer)
    flow.socket.close()
    flows.delete(key)
  }
  server.on('message', (bytes, from) => {
    const target = spec.targets()[0]
    if (!target) return
    const key = `${from.address} ${from.port}`
    let flow = flows.get(key)
    if (!flow) {
      const [oldest] = flows.keys()
      if (oldest !== undefined && flows.size >= udpFlowLimit) drop(oldest)
      const socket = dgram.createSocket(net.isIPv6(target.address) ? 'udp6' : 'udp4')
      socket.on('message', (answer) => server.send(answer, from.port, from.address))
      socket.on('error', () => drop(key))
      flow = { socket, timer: setTimeout(() => drop(key), udpIdleLimit) }
      flows.set(key, flow)
    }
    flow.timer.refresh()
    flow.socket.send(bytes, target.port, target.address)
  })
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.bind(spec.hostPort, spec.hostAddress, () => {
      server.removeAllListeners('error')
      server.on('error', () => {})
      resolve({
        close() {
          for (const key of [...flows.keys()]) drop(key)
          server.close()
        },
      })
    })
  })
}
