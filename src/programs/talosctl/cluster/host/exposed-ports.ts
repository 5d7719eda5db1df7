import net from 'node:net'
import { UsageError } from '../../failure.ts'

/** A port of the host that leads to a port of a node. */
export interface ExposedPort {
  hostPort: number
  nodePort: number
  protocol: 'tcp' | 'udp'
  /** The host's address, where it is not that of all ports. */
  address?: string | undefined
}

/**
 * Reads `hostPort:nodePort/protocol,…`; the protocol is tcp when left out, and ranges of equal length may stand on both sides.
 * Where ports are published by a container engine, an IPv4 address of the host may stand before each, with a colon behind it.
 */
export function parseExposedPorts(text: string, { addresses = false } = {}): ExposedPort[] {
  const ports = text
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '')
    .flatMap((part) => parseOne(part, addresses))
  const seen = new Set<string>()
  for (const { address, hostPort, protocol } of ports) {
    const key = `${address ? `${address}:` : ''}${hostPort}/${protocol}`
    if (seen.has(key)) throw new UsageError(`exposed port ${key} is given twice: use each port of the host once`)
    seen.add(key)
  }
  return ports
}

function parseOne(part: string, addresses: boolean): ExposedPort[] {
  const match = /^(?:(\d[\d.]*\d):)?(\d{1,5})(?:-(\d{1,5}))?:(\d{1,5})(?:-(\d{1,5}))?(?:\/(tcp|udp))?$/.exec(part)
  const address = match?.[1]
  if (address !== undefined && !addresses)
    throw new UsageError(`exposed port "${part}": all ports are exposed on one address of this host: write it as --host-ip`)
  if (!match || (address !== undefined && !net.isIPv4(address)))
    throw new UsageError(`exposed port "${part}": write hostPort:nodePort/protocol, such as 8080:30080/tcp`)
  const [, , from = '', to, nodeFrom = '', nodeTo, protocol = 'tcp'] = match
  const host = range(part, from, to)
  const node = range(part, nodeFrom, nodeTo)
  if (host.length !== node.length) throw new UsageError(`exposed port "${part}": the two ranges differ in length`)
  return host.map((hostPort, i) => ({
    hostPort,
    nodePort: node[i] ?? hostPort,
    protocol: protocol as 'tcp' | 'udp',
    ...(address && { address }),
  }))
}

function range(part: string, from: string, to = from): number[] {
  const first = Number(from)
  const last = Number(to)
  if (first < 1 || last > 65535 || first > last) throw new UsageError(`exposed port "${part}": ports go from 1 to 65535, ranges upwards`)
  return Array.from({ length: last - first + 1 }, (_, i) => first + i)
}
