import { flag, listOf, needed, section, text, url } from '../../../document/fields.ts'
import { defineDocument, type Reporter } from '../../../document/kind.ts'
import { isRegistryName } from './registry-name.ts'

function requireRegistry(name: string | undefined, report: Reporter): void {
  if (!name) report.error(['name'], 'the name of the registry is required, like "docker.io"')
  else if (!isRegistryName(name))
    report.error(['name'], `"${name}" is not the name of a registry, like "docker.io" or "registry.test:5000"`)
}

/** How to log in to a registry. */
export const RegistryAuthConfig = defineDocument({
  kind: 'RegistryAuthConfig',
  description: 'How to log in to a registry.',
  nameKey: 'name',
  schema: section({ name: text, username: text, password: text, auth: text, identityToken: text }),
  rules({ name, username, password, auth, identityToken }, report) {
    requireRegistry(name, report)
    const ways = [username || password, auth, identityToken].filter(Boolean)
    if (ways.length > 1) report.error([], 'give only one of username with password, auth, and identityToken')
  },
})

/** Mirrors of a registry. */
export const RegistryMirrorConfig = defineDocument({
  kind: 'RegistryMirrorConfig',
  description: 'Mirrors that are used before a registry, or instead of it.',
  nameKey: 'name',
  schema: section({
    name: text,
    endpoints: listOf(section({ url: needed(url('http', 'https')), overridePath: flag })),
    skipFallback: flag,
  }),
  rules({ name, endpoints }, report) {
    requireRegistry(name, report)
    for (const [index, endpoint] of (endpoints ?? []).entries()) {
      if (!endpoint.url) report.error(['endpoints', index, 'url'], 'a URL is required')
    }
  },
})

const isPem = (value: string, label: string) => value.includes(`-----BEGIN ${label}`) && value.includes(`-----END ${label}`)

/** How to trust a registry. */
export const RegistryTLSConfig = defineDocument({
  kind: 'RegistryTLSConfig',
  description: 'How to verify a registry, and the client certificate for it.',
  nameKey: 'name',
  schema: section({ name: text, clientIdentity: section({ cert: text, key: text }), ca: text, insecureSkipVerify: flag }),
  rules({ name, ca, clientIdentity }, report) {
    requireRegistry(name, report)
    if (ca && !isPem(ca, 'CERTIFICATE')) report.error(['ca'], 'not a certificate in PEM')
    if (!clientIdentity) return
    if (!isPem(clientIdentity.cert ?? '', 'CERTIFICATE')) report.error(['clientIdentity', 'cert'], 'not a certificate in PEM')
    if (!/-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----/.test(clientIdentity.key ?? ''))
      report.error(['clientIdentity', 'key'], 'not a private key in PEM')
  },
})
