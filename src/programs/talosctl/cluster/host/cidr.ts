import { formatIp } from '../../../../wire/ip.ts'
import { formatPrefix, isIPv6, masked, nthAddress, type Prefix, tryPrefix } from '../../../../wire/prefix.ts'
import { UsageError } from '../../failure.ts'

/** Reads a network such as `10.5.0.0/24`; a set host part is refused, for it is usually a slip. */
export function parseCidr(text: string, flag = '--cidr'): Prefix {
  const prefix = tryPrefix(text)
  if (!prefix) throw new UsageError(`${flag} "${text}": write a network such as 10.5.0.0/24`)
  if (isIPv6(text)) throw new UsageError(`${flag} "${text}": container clusters use an IPv4 network, such as 10.5.0.0/24`)
  if (prefix.bits < 8 || prefix.bits > 29) throw new UsageError(`${flag} "${text}": the prefix length must lie between 8 and 29`)
  const network = masked(prefix)
  if (nthAddress(prefix, 0) !== formatIp(prefix.bytes))
    throw new UsageError(`${flag} "${text}": the address is not the network's first: write ${formatPrefix(network)}`)
  return network
}

/** How many addresses an IPv4 network has, its first and last included. */
export const sizeOf = ({ bits }: Prefix): number => 2 ** (32 - bits)
