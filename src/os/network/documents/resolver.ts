import { flag, ip, isIp, listOf, section, text } from '../../../document/fields.ts'
import { defineDocument } from '../../../document/kind.ts'

/** Configures name servers and search domains. */
export const ResolverConfig = defineDocument({
  kind: 'ResolverConfig',
  description: 'Name servers and search domains.',
  schema: section({
    nameservers: listOf(section({ address: ip })),
    searchDomains: section({ domains: listOf(text), disableDefault: flag }),
  }),
})

/** Configures static host names of an IP address, as in /etc/hosts. */
export const StaticHostConfig = defineDocument({
  kind: 'StaticHostConfig',
  description: 'Static host names of one IP address, as in /etc/hosts.',
  nameKey: 'name',
  schema: section({ name: text, hostnames: listOf(text) }),
  rules({ name, hostnames }, report) {
    if (!name || !isIp(name)) report.error(['name'], 'the name has to be an IP address')
    if (!hostnames?.length) report.error(['hostnames'], 'at least one name is required')
  },
})
