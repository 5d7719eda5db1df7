import { flag, ip, isIp, listOf, section, text } from '../../../document/fields.ts'
import { defineDocument } from '../../../document/kind.ts'

/** Who resolves names, and in which domains. */
export const ResolverConfig = defineDocument({
  kind: 'ResolverConfig',
  description: 'Who resolves names, and in which domains.',
  schema: section({
    nameservers: listOf(section({ address: ip })),
    searchDomains: section({ domains: listOf(text), disableDefault: flag }),
  }),
})

/** Names of one address, known without a server. */
export const StaticHostConfig = defineDocument({
  kind: 'StaticHostConfig',
  description: 'Names of one address, known without a server.',
  nameKey: 'name',
  schema: section({ name: text, hostnames: listOf(text) }),
  rules({ name, hostnames }, report) {
    if (!name || !isIp(name)) report.error(['name'], 'the name has to be an IP address')
    if (!hostnames?.length) report.error(['hostnames'], 'at least one name is required')
  },
})
