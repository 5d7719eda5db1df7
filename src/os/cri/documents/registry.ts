import { described, flag, listOf, needed, section, text, url } from '../../../document/fields.ts'
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
  schema: section({
    name: described(text, 'The unique name of this document among those of its kind.'),
    username: described(text, 'The name we log in with.'),
    password: described(text, 'The password.'),
    auth: described(text, 'Name and password together, in base64.'),
    identityToken: described(text, 'A token in the place of name and password.'),
  }),
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
    name: described(text, 'The unique name of this document among those of its kind.'),
    endpoints: described(
      listOf(
        section({
          url: described(needed(url('http', 'https')), 'The address of the server.'),
          overridePath: described(flag, 'Whether the address holds the whole path of the API.'),
        }),
      ),
      'Servers that are used instead of the registry, in order.',
    ),
    skipFallback: described(flag, 'Uses no other server when none of these has the image.'),
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
  schema: section({
    name: described(text, 'The unique name of this document among those of its kind.'),
    clientIdentity: described(
      section({ cert: described(text, 'Our certificate, in PEM.'), key: described(text, 'Our key, in PEM.') }),
      'Our certificate and key.',
    ),
    ca: described(text, 'Who signed the certificate of the server, in PEM.'),
    insecureSkipVerify: described(flag, 'Takes any certificate: do not use this.'),
  }),
  rules({ name, ca, clientIdentity }, report) {
    requireRegistry(name, report)
    if (ca && !isPem(ca, 'CERTIFICATE')) report.error(['ca'], 'not a certificate in PEM')
    if (!clientIdentity) return
    if (!isPem(clientIdentity.cert ?? '', 'CERTIFICATE')) report.error(['clientIdentity', 'cert'], 'not a certificate in PEM')
    if (!/-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----/.test(clientIdentity.key ?? ''))
      report.error(['clientIdentity', 'key'], 'not a private key in PEM')
  },
})
