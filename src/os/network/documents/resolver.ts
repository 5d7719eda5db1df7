import { described, flag, ip, isIp, listOf, section, text } from '../../../document/fields.ts'
import { defineDocument } from '../../../document/kind.ts'

/** Configures name servers and search domains. */
export const ResolverConfig = defineDocument({
  kind: 'ResolverConfig',
  description: 'Name servers and search domains.',
  schema: section({
    nameservers: described(listOf(section({ address: described(ip, 'The address of the server.') })), 'DNS servers.'),
    searchDomains: described(
      section({
        domains: described(listOf(text), 'The domains, in order.'),
        disableDefault: described(flag, 'Leaves out the domain of the machine itself.'),
      }),
      'Domains that short names are looked up in.',
    ),
  }),
})

/** Configures static host names of an IP address, as in /etc/hosts. */
export const StaticHostConfig = defineDocument({
  kind: 'StaticHostConfig',
  description: 'Static host names of one IP address, as in /etc/hosts.',
  nameKey: 'name',
  schema: section({
    name: described(text, 'The unique name of this document among those of its kind.'),
    hostnames: described(listOf(text), 'Names that lead to the address.'),
  }),
  rules({ name, hostnames }, report) {
    if (!name || !isIp(name)) report.error(['name'], 'the name has to be an IP address')
    if (!hostnames?.length) report.error(['hostnames'], 'at least one name is required')
  },
})
