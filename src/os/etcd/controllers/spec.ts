import { defineController, exclusive, weak } from '../../../cosi/controller.ts'
import { settingsAnnotation } from '../../k8s/public.ts'
import { HostnameStatus } from '../../network/resources/hostname.ts'
import { NodeAddress } from '../../network/resources/node-address.ts'
import { etcdAddresses } from '../addresses.ts'
import { EtcdConfig } from '../resources/etcd-config.ts'
import { EtcdSpec } from '../resources/etcd-spec.ts'

/** etcd's name and addresses: those it advertises and those it listens on. */
export const specEtcd = defineController({
  name: 'etcd.SpecController',
  effects: 'none',
  inputs: {
    config: weak(EtcdConfig, { id: 'etcd' }),
    hostname: weak(HostnameStatus, { id: 'hostname' }),
    addresses: weak(NodeAddress),
  },
  outputs: { etcd: exclusive(EtcdSpec) },
  reconcile({ config, hostname, addresses, etcd }) {
    const given = config.get('etcd')?.spec
    const name = hostname.get('hostname')?.spec.hostname
    const routed = addresses.get('routed-no-k8s')?.spec.addresses
    if (!given || !name || !routed || routed.length === 0) return
    // This throws where the configuration allows none of the node's addresses; the spec then stays as it was.
    const chosen = etcdAddresses(given, routed)
    const settings = config.get('etcd')?.metadata.annotations[settingsAnnotation]
    etcd.put(
      'etcd',
      { name, ...chosen, image: given.image, extraArgs: given.extraArgs },
      { annotations: settings ? { [settingsAnnotation]: settings } : {} },
    )
  },
})
