/** Fields common to all documents that configure a link. */
import * as v from 'valibot'
import { cidr, described, flag, ip, listOf, needed, section, unsigned } from '../../../document/fields.ts'
import type { Reporter } from '../../../document/kind.ts'
import { addressOnly } from '../../../wire/prefix.ts'

/** A routing table: a number from 1 to 252, or one of the kernel's names. */
export const routingTable = v.pipe(
  v.string(),
  v.check(
    (value) => /^(unspec|default|main|local)$/.test(value) || (/^[1-9]\d{0,2}$/.test(value) && Number(value) <= 252),
    '{} is not a routing table: use a number from 1 to 252, "default", "main" or "local"',
  ),
)

/** Addresses, routes and state of a link. */
export const linkFields = {
  up: described(flag, 'Whether the link is up.'),
  mtu: described(unsigned(32), 'The largest packet, in bytes.'),
  addresses: described(
    listOf(
      section({
        address: described(needed(cidr), 'An address with its prefix length.'),
        routePriority: described(unsigned(32), 'The metric of the route to its network.'),
      }),
    ),
    'Addresses with their prefix lengths.',
  ),
  routes: described(
    listOf(
      section({
        destination: described(cidr, 'Where to; without it, everything.'),
        gateway: described(ip, 'The next machine on the way.'),
        source: described(ip, 'The address packets go out with.'),
        metric: described(unsigned(32), 'The lower, the better the route.'),
        mtu: described(unsigned(32), 'The largest packet on this route, in bytes.'),
        table: described(routingTable, 'The table the route belongs to.'),
      }),
    ),
    'Where packets go that leave by this link.',
  ),
  multicast: described(flag, 'Whether packets to groups are taken.'),
}

interface LinkDocument {
  name?: string | undefined
  addresses?: { address?: string | undefined }[] | undefined
  routes?: { destination?: string | undefined; gateway?: string | undefined; source?: string | undefined }[] | undefined
}

/** Validation rules of every document that configures a link. */
export function linkRules({ name, addresses = [], routes = [] }: LinkDocument, report: Reporter): void {
  requireName(name, report)
  for (const [index, { address }] of addresses.entries()) {
    const path = ['addresses', index, 'address']
    if (!address) report.error(path, 'an address is required')
    else if (unspecified(address)) report.error(path, `${JSON.stringify(address)} stands for no address: use a real one`)
  }
  for (const [index, route] of routes.entries()) {
    for (const key of ['gateway', 'source'] as const) {
      const value = route[key]
      if (value && unspecified(value))
        report.error(['routes', index, key], `${JSON.stringify(value)} stands for no address: use a real one`)
    }
  }
}

/** Rejects a document without the name its kind requires. */
export function requireName(name: string | undefined, report: Reporter): void {
  if (!name) report.error(['name'], 'a name is required')
}

const unspecified = (address: string) => /^(0\.0\.0\.0|[0:]+)(\/\d+)?$/.test(address) && !/[1-9a-f]/i.test(addressOnly(address))
