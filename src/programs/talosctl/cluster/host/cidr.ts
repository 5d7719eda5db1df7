import { formatIp } from '../../../../wire/ip.ts'
import { familyOf, formatPrefix, masked, nthAddress, type Prefix, tryPrefix } from '../../../../wire/prefix.ts'
import { UsageError } from '../../failure.ts'

/** Lengths of prefixes by family: a network has room for nodes, and numbers of its addresses are exact. */
const lengths = { inet4: [8, 29], inet6: [48, 120] } as const

/** The networks of a cluster: one, or one of each address family; the first is the one that nodes are named by. */
export interface Networks {
  readonly first: Prefix
  readonly second?: Prefix | undefined
}

/** Reads the networks of a cluster: `10.5.0.0/24`, `fd00:5::/64`, or one of each, the more important first. */
export function parseNetworks(text: string, flag = '--cidr'): Networks {
  const [first = '', second, ...more] = text.split(',').map((one) => one.trim())
  if (more.length > 0 || (second !== undefined && familyOf(first) === familyOf(second)))
    throw new UsageError(`${flag} "${text}": write one network, or one of IPv4 and one of IPv6, such as 10.5.0.0/24,fd00:5::/64`)
  return { first: parseCidr(first, flag), ...(second !== undefined && { second: parseCidr(second, flag) }) }
}

/** The networks as they are written. */
export const formatNetworks = ({ first, second }: Networks): string =>
  [first, second].flatMap((one) => (one ? [formatPrefix(one)] : [])).join(',')

/** Reads a network such as `10.5.0.0/24`; a set host part is refused, for it is usually a slip. */
export function parseCidr(text: string, flag = '--cidr'): Prefix {
  const prefix = tryPrefix(text)
  if (!prefix) throw new UsageError(`${flag} "${text}": write a network such as 10.5.0.0/24`)
  const [shortest, longest] = lengths[familyOf(text)]
  if (prefix.bits < shortest || prefix.bits > longest)
    throw new UsageError(`${flag} "${text}": the prefix length must lie between ${shortest} and ${longest}`)
  const network = masked(prefix)
  if (nthAddress(prefix, 0) !== formatIp(prefix.bytes))
    throw new UsageError(`${flag} "${text}": the address is not the network's first: write ${formatPrefix(network)}`)
  return network
}

/** How many addresses a network has, its first and last included. */
export const sizeOf = ({ bytes, bits }: Prefix): number => 2 ** (bytes.length * 8 - bits)
