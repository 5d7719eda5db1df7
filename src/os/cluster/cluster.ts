import { connect } from '../../rpc/client/channel.ts'
import type { Area } from '../area.ts'
import { nodeAccess } from '../k8s/public.ts'
import { healthCheck } from './api/health-check.ts'
import { configLocalAffiliate, mergeAffiliates, observeEndpoints, observeMembers } from './controllers/affiliate.ts'
import { configDiscovery, configInfo } from './controllers/config.ts'
import { discoverByService } from './controllers/discovery-service.ts'
import { configIdentity } from './controllers/identity.ts'
import { pullFromKubernetes, pushToKubernetes } from './controllers/kubernetes-registry.ts'
import { configInitiatorName, configNvmeHost } from './controllers/storage-names.ts'
import { resources } from './resource-types.ts'

/** Membership of the cluster. */
export const cluster: Area = {
  name: 'cluster',
  resources,
  parts: (machine) => ({
    methods: [healthCheck],
    controllers: [
      configIdentity(machine.kernel),
      configInitiatorName,
      configNvmeHost,
      configInfo,
      configDiscovery,
      configLocalAffiliate(machine),
      discoverByService(({ serviceEndpoint: address, serviceEndpointInsecure }) =>
        connect(machine.outbound.target(address, { plain: serviceEndpointInsecure === true })),
      ),
      pushToKubernetes,
      pullFromKubernetes(() => nodeAccess(machine.store, machine.kernel.files)),
      mergeAffiliates,
      observeMembers,
      observeEndpoints,
    ],
  }),
}
