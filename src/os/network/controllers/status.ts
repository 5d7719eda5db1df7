import { type Controller, defineController, exclusive, weak } from '../../../cosi/controller.ts'
import { EtcFileStatus } from '../../files/resources/etc-file.ts'
import { HostnameStatus } from '../resources/hostname.ts'
import { NetworkStatus } from '../resources/network-status.ts'
import { NodeAddress } from '../resources/node-address.ts'
import { ProbeStatus } from '../resources/probe.ts'
import { RouteStatus } from '../resources/route.ts'

/** Files required for name resolution. */
const needed = ['hosts', 'resolv.conf']

/** Publishes which parts of the network are ready. */
export const observeNetworkStatus: Controller = defineController({
  name: 'network.StatusController',
  inputs: {
    addresses: weak(NodeAddress),
    routes: weak(RouteStatus),
    hostname: weak(HostnameStatus),
    etc: weak(EtcFileStatus),
    probes: weak(ProbeStatus),
  },
  outputs: { status: exclusive(NetworkStatus) },
  reconcile({ addresses, routes, hostname, etc, probes, status }) {
    const probed = probes.list()
    status.put('status', {
      addressReady: (addresses.get('current')?.spec.addresses ?? []).length > 0,
      connectivityReady:
        probed.length > 0
          ? probed.every(({ spec }) => spec.success)
          : routes.list().some(({ spec }) => spec.dst === '' && spec.gateway !== ''),
      hostnameReady: hostname.get('hostname') !== undefined,
      etcFilesReady: needed.every((id) => etc.get(id) !== undefined),
    })
  },
})
