import { unary } from '../../../rpc/server/method.ts'
import { HostnameStatus } from '../resources/hostname.ts'

/** What the node is called. */
export const hostname = unary('machine.MachineService/Hostname', ['os:admin', 'os:operator', 'os:reader'], (_, { store }) => ({
  messages: [{ hostname: store.get(HostnameStatus, 'hostname')?.spec.hostname ?? '' }],
}))
