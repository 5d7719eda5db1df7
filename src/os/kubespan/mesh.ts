/** Constants and addresses of the mesh, equal on all nodes of a cluster. */
import { formatHostPort } from '../../wire/host-port.ts'
import { formatIp, parseMac } from '../../wire/ip.ts'

/** The WireGuard link and its port on every node. */
export const meshLink = 'kubespan'
export const meshPort = 51820
/** Payload of a packet within a packet of 1500 bytes. */
export const defaultMtu = 1420
/** Keepalive interval in seconds, which keeps NAT mappings open. */
export const keepalive = 25

/** Packet marks: WireGuard's own packets are routed normally, those for peers into the link. */
export const marks = { mask: 0x60, wireguard: 0x20, force: 0x40 } as const
/** The routing table of the link, and the priority of the rule for it. */
export const meshTable = 180
export const meshRule = 32500

/** The purpose of a unique local address network (RFC 4193), its eighth byte. */
export const purpose = { kubespan: 2 } as const

/** The /64 of unique local addresses of a cluster for a purpose, derived from the cluster id alone. */
export function clusterNetwork(clusterId: string, of: number): Uint8Array {
  const bytes = new Uint8Array(new Bun.CryptoHasher('sha256').update(clusterId).digest()).slice(16, 32)
  bytes[0] = 0xfd
  bytes[7] = of
  return bytes.fill(0, 8)
}

/** Address and network of a machine in the mesh: the cluster's network with the hardware address as EUI-64 (RFC 4291 appendix A). */
export function meshAddress(clusterId: string, hardwareAddress: string): { address: string; subnet: string } {
  const mac = parseMac(hardwareAddress)
  const [first = 0, ...rest] = mac ?? []
  if (mac?.length !== 6) throw new RangeError(`"${hardwareAddress}" is not a hardware address of six bytes`)
  const bytes = clusterNetwork(clusterId, purpose.kubespan)
  const subnet = `${formatIp(bytes)}/64`
  bytes.set([first ^ 2, ...rest.slice(0, 2), 0xff, 0xfe, ...rest.slice(2)], 8)
  return { address: `${formatIp(bytes)}/128`, subnet }
}

/** Formats `10.0.0.1:51820` or `[fd00::1]:51820`. */
export const endpointOf = (address: string, port = meshPort): string => formatHostPort(address, port)
