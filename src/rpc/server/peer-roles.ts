/**
 * What a process on this machine may do through machined's socket: roles are claimed in metadata, and believed only as
 * far as the service goes that the process belongs to. A process of no service may do nothing.
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

/** The most that a process of this service may do. */
export function serviceRoles(service: string | undefined): readonly Role[] {
  if (service?.startsWith('ext-')) return allRoles
  return service !== undefined && Object.hasOwn(limits, service) ? limits[service]! : []
}

/**
 * A server's `roles`: those claimed, within the limits of the service at the other end. A service that was found stays for
 * its connection; that none was found is not kept, for a process may call before its supervisor has heard of it.
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
