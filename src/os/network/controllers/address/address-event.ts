import { type Controller, defineController, weak } from '../../../../cosi/controller.ts'
import type { Machine } from '../../../area.ts'
import { HostnameStatus } from '../../resources/hostname.ts'
import { NodeAddress } from '../../resources/node-address.ts'

/** Addresses of the node itself, without those of pods and services. */
const nodeAddresses = 'current-no-k8s'

/** Publishes an AddressEvent whenever the node's hostname or addresses change. */
export const publishAddresses = ({ events }: Pick<Machine, 'events'>): Controller => {
  let before: object | undefined
  return defineController({
    name: 'network.AddressEventController',
    inputs: { addresses: weak(NodeAddress, { id: nodeAddresses }), hostname: weak(HostnameStatus, { id: 'hostname' }) },
    outputs: {},
    reconcile({ addresses, hostname }) {
      const found = addresses.get(nodeAddresses)?.spec
      if (!found) return
      const now = {
        hostname: hostname.get('hostname')?.spec.hostname ?? '',
        addresses: found.addresses.map((address) => address.slice(0, address.indexOf('/'))),
      }
      if (Bun.deepEquals(now, before)) return
      before = now
      events.publish('machine.AddressEvent', now)
    },
  })
}
