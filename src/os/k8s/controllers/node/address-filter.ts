import { type Controller, defineController, exclusive, weak } from '../../../../cosi/controller.ts'
import { podSubnets, serviceSubnets } from '../../../config/public.ts'
import { MachineConfig } from '../../../config/resources/machine-config.ts'
import { NodeAddressFilter } from '../../../network/resources/node-address.ts'
import { kubernetesConfigOf } from '../../machine-config.ts'
import { NodeStatus } from '../../resources/node.ts'
import { Nodename } from '../../resources/nodename.ts'

/** Which of the node's addresses belong to Kubernetes: pods', services', and those a pod network added to this node. */
export const configAddressFilter: Controller = defineController({
  name: 'k8s.AddressFilterController',
  effects: 'none',
  inputs: { config: weak(MachineConfig, { id: 'v1alpha1' }), nodename: weak(Nodename), status: weak(NodeStatus) },
  outputs: { filters: exclusive(NodeAddressFilter) },
  reconcile({ config, nodename, status, filters }) {
    const found = kubernetesConfigOf(config.get('v1alpha1'))
    if (!found) return
    const own = status.get(nodename.get('nodename')?.spec.nodename ?? '')?.spec.podCIDRs ?? []
    const subnets = [...new Set([...podSubnets(found.cluster), ...serviceSubnets(found.cluster), ...own])]
    filters.put('no-k8s', { includeSubnets: [], excludeSubnets: subnets })
    filters.put('only-k8s', { includeSubnets: subnets, excludeSubnets: [] })
  },
})
