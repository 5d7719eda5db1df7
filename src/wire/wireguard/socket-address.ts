/** Endpoints as socket addresses (ip(7), ipv6(7)) and as text. */
import { formatHostPort, parseIpPort } from '../host-port.ts'
import { formatIp } from '../ip.ts'
import type { Endpoint } from './peer.ts'

/** Address families, and the lengths of their socket addresses. */
export const family = { inet: 2, inet6: 10 } as const
export const socketAddressLength = { inet: 16, inet6: 28 } as const

/** The endpoint of `10.0.0.1:51820` or `[fd00::1]:51820`; undefined when it is malformed. */
export function parseEndpoint(text: string): Endpoint | undefined {
  const parsed = parseIpPort(text)
  if (!parsed) return undefined
  const isV4 = parsed.address.length === 4
  const socketAddress = Buffer.alloc(isV4 ? socketAddressLength.inet : socketAddressLength.inet6)
  socketAddress.writeUInt16LE(isV4 ? family.inet : family.inet6, 0)
  socketAddress.writeUInt16BE(parsed.port, 2)
  socketAddress.set(parsed.address, isV4 ? 4 : 8)
  return { socketAddress }
}

/** The text of an endpoint. */
export function formatEndpoint({ socketAddress }: Endpoint): string {
  const isV4 = socketAddress[0] === family.inet
  const address = isV4 ? socketAddress.subarray(4, 8) : socketAddress.subarray(8, 24)
  return formatHostPort(formatIp(address), ((socketAddress[2] ?? 0) << 8) | (socketAddress[3] ?? 0))
}
