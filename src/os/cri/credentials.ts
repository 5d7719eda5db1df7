import type { SpecOf } from '../../cosi/resource.ts'
import type { Credentials } from '../../supervise/containerd/images.ts'
import type { RegistryConfig } from './resources/registry-config.ts'

type Auths = SpecOf<typeof RegistryConfig>['auths']

/** The credentials for each registry; an identity token is a password without a user. */
export function credentialsOf(auths: Auths): Credentials | undefined {
  if (!auths || Object.keys(auths).length === 0) return undefined
  return (host) => {
    const known = auths[host] ?? (host === 'registry-1.docker.io' ? auths['docker.io'] : undefined)
    if (!known) return undefined
    if (known.identityToken) return { username: '', password: known.identityToken }
    if (known.auth) {
      const [username = '', ...password] = Buffer.from(known.auth, 'base64').toString().split(':')
      return { username, password: password.join(':') }
    }
    return { username: known.username ?? '', password: known.password ?? '' }
  }
}
