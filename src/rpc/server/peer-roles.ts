/**
 * Roles of local processes on machined's socket: roles are claimed in metadata and granted only within the limits of the
 * service that the process belongs to. A process that belongs to no service gets none.
 */
import type { PeerSocket } from '../http2/output.ts'
import { type Caller, namedRoles } from './call.ts'
import { allRoles, type Role } from './method.ts'

const limits: Record<string, readonly Role[]> = {
  apid: allRoles,
  containerd: ['os:image:verifier'],
  cri: ['os:image:verifier'],
  dashboard: ['os:reader', 'os:meta:writer'],
  machined: [],
}

/** The roles that a process of this service may have. */
export function serviceRoles(service: string | undefined): readonly Role[] {
  if (service?.startsWith('ext-')) return allRoles
  return service !== undefined && Object.hasOwn(limits, service) ? limits[service]! : []
}

/**
 * A server's `roles`: those claimed, limited to those of the peer's service. A service that was found is cached for the
 * connection; a negative result is not, because a process may call before its supervisor has registered it.
 */
export function peerRoles(serviceOf: (socket: PeerSocket) => string | undefined): (caller: Caller) => ReadonlySet<Role> {
  const known = new WeakMap<PeerSocket, string>()
  return (caller) => {
    const service = known.get(caller.socket) ?? serviceOf(caller.socket)
    if (service !== undefined) known.set(caller.socket, service)
    const allowed = serviceRoles(service)
    const claimed = namedRoles(caller)
    return new Set(allowed.filter((role) => claimed.has(role)))
  }
}
