import { type Controller, defineController, exclusive, weak } from '../../../../cosi/controller.ts'
import { isPhysical } from '../../link/names.ts'
import { HardwareAddress } from '../../resources/hardware-address.ts'
import { LinkStatus } from '../../resources/link.ts'

/** Publishes the hardware address that identifies this machine: of its first physical link or, in a container, of the first Ethernet link. */
export const observeHardwareAddress: Controller = defineController({
  name: 'network.HardwareAddrController',
  effects: 'none',
  inputs: { links: weak(LinkStatus) },
  outputs: { address: exclusive(HardwareAddress) },
  reconcile({ links, address }) {
    const ether = links.list().filter(({ spec }) => spec.type === 'ether' && spec.permanentAddr !== '')
    const inOrder = ether.toSorted((a, b) => a.spec.index - b.spec.index)
    const first = inOrder.find(({ spec }) => isPhysical(spec)) ?? inOrder.find(({ spec }) => spec.kind === 'veth')
    if (first) address.put('first', { name: first.metadata.id, hardwareAddr: first.spec.permanentAddr })
  },
})
