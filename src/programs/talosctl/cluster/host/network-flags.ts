import { UsageError } from '../../failure.ts'
import { clusterId } from '../plan/plan.ts'
import { type Networks, parseCidr, parseNetworks } from './cidr.ts'

/** Flags of `cluster create` that decide about its networks. */
export interface NetworkFlags {
  readonly name: string
  readonly state: string
  readonly provisioner?: string | undefined
  readonly defaultCidr: string
  readonly subnet?: string | undefined
  readonly ipv4: boolean
  readonly ipv6?: boolean | undefined
}

/** The networks that are requested: named, or IPv4 by default, with a private IPv6 network beside it or instead. */
export function networksOfFlags(flags: NetworkFlags): Networks {
  const networks = chosen(flags)
  if (flags.provisioner === 'qemu' && [networks.first, networks.second].some((one) => one?.bytes.length === 16))
    throw new UsageError('--ipv6: virtual machines of a cluster get their addresses by DHCP, which is IPv4: leave it out')
  if (flags.provisioner === 'docker' && (networks.second || networks.first.bytes.length === 16))
    throw new UsageError('--ipv6: nodes in Docker or Podman have one IPv4 network: leave it out, or create the cluster without "docker"')
  return networks
}

function chosen({ name, state, defaultCidr, subnet, ipv4, ipv6 }: NetworkFlags): Networks {
  const named = subnet === undefined ? undefined : parseNetworks(subnet)
  const isNamed = (length: number) => [named?.first, named?.second].some((one) => one?.bytes.length === length)
  if (!ipv4 && isNamed(4)) throw new UsageError(`--cidr "${subnet}": it names an IPv4 network, which --ipv4=false excludes`)
  if (named && (isNamed(16) || !ipv6)) return named
  if (!ipv6) {
    if (!ipv4) throw new UsageError('--ipv4=false: nodes need an address: add --ipv6')
    return { first: parseCidr(defaultCidr) }
  }
  const own = parseCidr(privateNetwork(clusterId(state, name)))
  return ipv4 ? { first: named?.first ?? parseCidr(defaultCidr), second: own } : { first: own }
}

/** A network of the cluster's own among the private ones of IPv6 (RFC 4193). */
const privateNetwork = (id: string): string => `fd${id.slice(0, 2)}:${id.slice(2, 6)}:${id.slice(6, 8)}::/64`
