import { networkInterfaces } from 'node:os'
import { formatPrefix, masked, overlaps, type Prefix, parsePrefix } from '../../../../wire/prefix.ts'
import { parseCidr } from './cidr.ts'

/** A network this host is in already. */
export interface HostNetwork {
  link: string
  cidr: Prefix
}

/** The networks of this host's interfaces; addresses of one link alone, of which every link has some, are left out. */
export function hostNetworks(): HostNetwork[] {
  return Object.entries(networkInterfaces()).flatMap(([link, addresses = []]) =>
    addresses.flatMap(({ cidr }) => (cidr === null || cidr.startsWith('fe80:') ? [] : [{ link, cidr: masked(parsePrefix(cidr)) }])),
  )
}

/** The first network in use that a wanted one shares addresses with. */
export function clash(wanted: Prefix, used: readonly HostNetwork[]): HostNetwork | undefined {
  return used.find(({ cidr }) => overlaps(wanted, cidr))
}

/** A network that nobody uses, to be named in the refusal of another. */
export function freeNetwork(used: readonly HostNetwork[]): string | undefined {
  for (let second = 5; second < 256; second++) {
    const candidate = parseCidr(`10.${second}.0.0/24`)
    // Pods and services have their own ranges, which a node's address must not lie in.
    if (second !== 96 && second !== 244 && !clash(candidate, used)) return formatPrefix(candidate)
  }
  return undefined
}
