import { readers, unary } from '../../../rpc/server/method.ts'
import { HostnameStatus } from '../resources/hostname.ts'

/** Returns the hostname of the node. */
export const hostname = unary('machine.MachineService/Hostname', readers, (_, { store }) => ({
  messages: [{ hostname: store.get(HostnameStatus, 'hostname')?.spec.hostname ?? '' }],
}))
