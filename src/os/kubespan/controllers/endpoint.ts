import { type Controller, defineController, exclusive, weak } from '../../../cosi/controller.ts'
import { Affiliate } from '../../cluster/resources/affiliate.ts'
import { KubeSpanConfig } from '../resources/kube-span-config.ts'
import { KubeSpanEndpoint } from '../resources/kube-span-endpoint.ts'
import { KubeSpanPeerStatus } from '../resources/kube-span-peer.ts'

/** Publishes the endpoints at which peers were reached, for other nodes to try: behind NAT an endpoint is visible only from outside. */
export const harvestEndpoints: Controller = defineController({
  name: 'kubespan.EndpointController',
  effects: 'none',
  inputs: { config: weak(KubeSpanConfig, { id: 'kubespan' }), affiliates: weak(Affiliate), statuses: weak(KubeSpanPeerStatus) },
  outputs: { endpoints: exclusive(KubeSpanEndpoint) },
  reconcile({ config, affiliates, statuses, endpoints }) {
    const mesh = config.get('kubespan')?.spec
    if (!mesh?.enabled || !mesh.harvestExtraEndpoints) return
    const nodes = new Map(affiliates.list().map(({ spec }) => [spec.kubespan?.publicKey, spec.nodeId]))
    for (const { metadata, spec } of statuses.list()) {
      const affiliateID = nodes.get(metadata.id)
      if (spec.state === 'up' && spec.endpoint !== '' && affiliateID) endpoints.put(metadata.id, { affiliateID, endpoint: spec.endpoint })
    }
  },
})
