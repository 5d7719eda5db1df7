import type { Area, Machine } from '../../os/area.ts'
import { machineSocket } from '../../os/runtime/services/machined.ts'
import { apidAccess, roleAccess, trustdAccess } from '../../rpc/server/resource-access.ts'
import { serveUnix } from '../../rpc/server/server.ts'
import { stateMethods } from '../../rpc/server/state.ts'

/** Opens the machine API for apid, and for apid and trustd the few resources that each of them may read. */
export async function openSockets(machine: Machine, areas: readonly Area[]): Promise<void> {
  const { store, log } = machine
  const methods = [...areas.flatMap((area) => area.methods?.(machine) ?? []), ...stateMethods(roleAccess)]
  // The socket's owner is its guard: apid alone opens it, and says in metadata which roles its caller has.
  await serveUnix({ path: machineSocket, mode: 0o600, uid: 50, gid: 50 }, { methods, store, log })
  const views = [
    { path: '/system/run/apid/runtime.sock', uid: 50, access: apidAccess },
    { path: '/system/run/trustd/runtime.sock', uid: 51, access: trustdAccess },
  ]
  for (const { path, uid, access } of views)
    await serveUnix({ path, mode: 0o600, uid, gid: uid }, { methods: stateMethods(access, 'anyone'), store, log })
}
