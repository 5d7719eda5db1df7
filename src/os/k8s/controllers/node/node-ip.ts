import { defineController, exclusive, weak } from '../../../../cosi/controller.ts'
import { isIPv6 } from '../../../../wire/prefix.ts'
import { allowedAddresses } from '../../../network/public.ts'
import { NodeAddress } from '../../../network/resources/node-address.ts'
import { NodeIP, NodeIPConfig } from '../../resources/node-ip.ts'

/** The addresses that the kubelet reports as the node's: the first allowed one per address family. */
export const chooseNodeIP = defineController({
  name: 'k8s.NodeIPController',
  effects: 'none',
  inputs: { config: weak(NodeIPConfig, { id: 'kubelet' }), addresses: weak(NodeAddress, { id: 'routed-no-k8s' }) },
  outputs: { nodeIP: exclusive(NodeIP) },
  reconcile({ config, addresses, nodeIP, log }) {
    const choice = config.get('kubelet')?.spec
    const routed = addresses.get('routed-no-k8s')?.spec.addresses
    if (!choice || !routed) return
    const allowed = allowedAddresses(routed, choice.validSubnets ?? [], choice.excludeSubnets)
    const chosen = [allowed.find((address) => !isIPv6(address)), allowed.find(isIPv6)].filter((address) => address !== undefined)
    if (chosen.length === 0) {
      log.warn('no address of the node lies in the allowed subnets', { addresses: routed, allowed: choice.validSubnets })
      return
    }
    nodeIP.put('kubelet', { addresses: chosen })
  },
})
