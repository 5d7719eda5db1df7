import { type Controller, defineController, weak } from '../../../cosi/controller.ts'
import type { Store } from '../../../cosi/store.ts'
import { Service } from '../../runtime/resources/service.ts'
import { urlsOf } from '../arguments.ts'
import { memberIdOf } from '../client.ts'
import { localEtcd } from '../endpoints.ts'
import { EtcdSpec } from '../resources/etcd-spec.ts'
import { PKIStatus } from '../resources/pki-status.ts'

/** Updates this member's peer URLs in etcd when the node's address has changed. */
export const updatePeerURLs = ({ store }: { store: Store }): Controller =>
  defineController({
    name: 'etcd.AdvertisedPeerController',
    inputs: { spec: weak(EtcdSpec, { id: 'etcd' }), pki: weak(PKIStatus, { id: 'etcd' }), services: weak(Service, { id: 'etcd' }) },
    outputs: {},
    async reconcile({ spec, pki, services, log }) {
      const given = spec.get('etcd')?.spec
      if (!given || !pki.get('etcd')?.spec.ready || !services.get('etcd')?.spec.healthy) return
      const peerURLs = urlsOf(given.advertisedAddresses, 2380)
      const client = localEtcd(store)
      try {
        const id = await memberIdOf(client)
        const self = (await client.members()).find((member) => member.ID === id)
        if (!self || sameSet(self.peerURLs, peerURLs)) return
        log.info('updating the peer URLs of this etcd member', { from: self.peerURLs, to: peerURLs })
        await client.updatePeers(id, peerURLs)
      } finally {
        client.close()
      }
    },
  })

function sameSet(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((one) => b.includes(one))
}
