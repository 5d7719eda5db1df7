/**
 * Roles of local processes on machined's socket: roles are claimed in metadata and granted only within the limits of the
 * service that the process belongs to. A process that belongs to no service gets none.
 */
import { allRoles, type Role } from '../../wire/x509/roles.ts'
import type { PeerSocket } from '../http2/output.ts'
import type { Caller } from './call.ts'

const limits = new Map<string, readonly Role[]>([
  ['apid', allRoles],
  ['containerd', ['os:image:verifier']],
  ['cri', ['os:image:verifier']],
  ['dashboard', ['os:reader', 'os:meta:writer']],
  ['machined', []],
])

/** The roles that a process of this service may have. */
export function serviceRoles(service: string | undefined): readonly Role[] {
  if (service?.startsWith('ext-')) return allRoles
  return limits.get(service ?? '') ?? []
}

/**
 * A server's `roles`: those claimed, limited to those of the peer's service. A service that was found is cached for the
 * connection; a negative result is not, because a process may call before its supervisor has registered it.
 */
export function peerRoles(serviceOf: (socket: PeerSocket) => string | undefined): (caller: Caller) => ReadonlySet<Role> {
  const known = new WeakMap<PeerSocket, GrantedRoles>()
  return ({ socket, metadata }) => {
    let granted = known.get(socket)
    if (!granted) {
      const service = serviceOf(socket)
      granted = new GrantedRoles(serviceRoles(service))
      if (service !== undefined) known.set(socket, granted)
    }
    return granted.of(metadata['talos-role'] ?? [])
  }
}

/** Claims of a connection that are remembered: apid, which claims the roles of each client, has a connection for each. */
const mostClaims = 8

/** The roles that a service gets of those it claims. */
class GrantedRoles {
  readonly #sets = new Map<string, ReadonlySet<Role>>()

  constructor(readonly allowed: readonly Role[]) {}

  of(claimed: readonly string[]): ReadonlySet<Role> {
    const [first = ''] = claimed
    const key = claimed.length <= 1 ? first : claimed.join()
    const known = this.#sets.get(key)
    if (known) return known
    const roles = new Set(this.allowed.filter((role) => claimed.includes(role)))
    if (this.#sets.size < mostClaims && key.length < 256) this.#sets.set(key, roles)
    return roles
  }
}
