import { peerCredentials } from '../../linux/socket.ts'
import type { Area, Machine } from '../../os/area.ts'
import { machineSocket } from '../../os/runtime/services/machined.ts'
import type { PeerSocket } from '../../rpc/http2/output.ts'
import { peerRoles } from '../../rpc/server/peer-roles.ts'
import { apidAccess, roleAccess, trustdAccess } from '../../rpc/server/resource-access.ts'
import { serveUnix } from '../../rpc/server/server.ts'
import { stateMethods } from '../../rpc/server/state.ts'

/** Opens the machine API for apid, and for apid and trustd the few resources that each of them may read. */
export async function openSockets(machine: Machine, areas: readonly Area[]): Promise<void> {
  const { store, log } = machine
  const methods = [...areas.flatMap((area) => area.methods?.(machine) ?? []), ...stateMethods(roleAccess)]
  // The kernel says who is at the other end; what roles it claims is believed as far as that service's go.
  const roles = peerRoles((socket) => serviceOf(machine, socket))
  await serveUnix({ path: machineSocket, mode: 0o600, uid: 50, gid: 50 }, { methods, store, log, roles, observer: machine.calls })
  const views = [
    { path: '/system/run/apid/runtime.sock', uid: 50, access: apidAccess },
    { path: '/system/run/trustd/runtime.sock', uid: 51, access: trustdAccess },
  ]
  for (const { path, uid, access } of views)
    await serveUnix({ path, mode: 0o600, uid, gid: uid }, { methods: stateMethods(access, 'anyone'), store, log })
}

/** The service whose process opened a connection. */
function serviceOf({ supervisor }: Machine, { fd }: PeerSocket): string | undefined {
  if (fd < 0) return undefined
  const { pid } = peerCredentials(fd)
  return supervisor.list().find((service) => service.pid === pid)?.id
}
