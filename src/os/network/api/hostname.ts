import { readers, unary } from '../../../rpc/server/method.ts'
import { HostnameStatus } from '../resources/hostname.ts'

/** What the node is called. */
export const hostname = unary('machine.MachineService/Hostname', readers, (_, { store }) => ({
  messages: [{ hostname: store.get(HostnameStatus, 'hostname')?.spec.hostname ?? '' }],
}))
