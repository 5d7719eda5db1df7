import { peerCredentials } from '../../linux/net/socket.ts'
import type { Machine } from '../../os/area.ts'
import { inMaintenance, stateIsLocked } from '../../os/config/maintenance.ts'
import { machineSocket } from '../../os/machine-socket.ts'
import type { PeerSocket } from '../../rpc/http2/output.ts'
import type { ServerOptions } from '../../rpc/server/call.ts'
import type { Method } from '../../rpc/server/method.ts'
import { peerRoles } from '../../rpc/server/peer-roles.ts'
import { apidAccess, metricsdAccess, roleAccess, trustdAccess } from '../../rpc/server/resource-access.ts'
import { type Server, serveUnix, type UnixAddress } from '../../rpc/server/server.ts'
import { stateMethods } from '../../rpc/server/state.ts'
import { withRetries } from '../../timing/retry.ts'
import type { Assembled } from './assemble.ts'

/**
 * Opens the machine API for apid, for apid and trustd the few resources that each of them may read, and for metricsd those and the
 * metrics. `serveAt` serves at an address.
 */
export async function openSockets(machine: Assembled, serveAt = serveUnix): Promise<Server[]> {
  const { store, log } = machine
  const methods = [...machine.methods, ...stateMethods(roleAccess)]
  // The kernel identifies the peer; the roles it claims are trusted within the limits of that service.
  const roles = peerRoles((socket) => serviceOf(machine, socket))
  const served = { methods, store, log, roles, inMaintenance: isOpenTo(store), observer: machine.calls }
  const serve = (address: UnixAddress, options: ServerOptions) =>
    withRetries(
      `listen on ${address.path}`,
      () => serveAt(address, options),
      (problem, error) => log.warn(problem, { error }),
    )
  const servers = [await serve({ path: machineSocket, mode: 0o600, uid: 50, gid: 50 }, served)]
  const views = [
    { path: '/system/run/apid/runtime.sock', uid: 50, methods: stateMethods(apidAccess, 'anyone') },
    { path: '/system/run/trustd/runtime.sock', uid: 51, methods: stateMethods(trustdAccess, 'anyone') },
    { path: '/system/run/metricsd/runtime.sock', uid: 52, methods: [...stateMethods(metricsdAccess, 'anyone'), ...metricsOf(machine)] },
  ]
  for (const { path, uid, methods: seen } of views)
    servers.push(await serve({ path, mode: 0o600, uid, gid: uid }, { methods: seen, store, log }))
  return servers
}

/** The metrics, for a peer that needs no role: its socket is its right. */
function metricsOf({ methods }: Assembled): Method[] {
  return methods.filter(({ path }) => path === 'ichor.v1.MetricsService/Metrics').map((method) => ({ ...method, access: 'anyone' }))
}

/** Methods that maintenance opens; while STATE is locked, the one that unlocks it. */
const isOpenTo = (store: Machine['store']) => (path: Method['path']) =>
  inMaintenance(store) || (path === 'ichor.v1.VolumeService/Unlock' && stateIsLocked(store))

/** The service whose process opened a connection; a connection that is gone by now is nobody's. */
function serviceOf({ supervisor, log }: Machine, { fd }: PeerSocket): string | undefined {
  if (fd < 0) return undefined
  try {
    const { pid } = peerCredentials(fd)
    return supervisor.list().find((service) => service.pid === pid)?.id
  } catch (error) {
    log.debug('caller is unknown', { error })
    return undefined
  }
}
