import { type Controller, defineController, weak } from '../../../cosi/controller.ts'
import type { Outbound } from '../../outbound.ts'
import { parseApiUrl } from '../api-url.ts'
import type { GrpcTunnel } from '../grpc-tunnel.ts'
import { SiderolinkTunnel } from '../resources/siderolink.ts'

/** Carries WireGuard's datagrams through the API of the management server. */
export const runTunnel = (tunnel: GrpcTunnel, outbound: Pick<Outbound, 'target'>): Controller =>
  defineController({
    name: 'siderolink.UserspaceWireguardController',
    inputs: { tunnels: weak(SiderolinkTunnel, { id: 'siderolink-tunnel' }) },
    outputs: {},
    reconcile({ tunnels, background, log }) {
      const wanted = tunnels.get('siderolink-tunnel')?.spec
      if (!wanted) return
      const { address, plain } = parseApiUrl(wanted.apiEndpoint)
      const { nodeAddress } = wanted
      const end = { target: () => outbound.target(address, { plain }), nodeAddress }
      background({ name: 'tunnel', of: `${wanted.apiEndpoint} ${nodeAddress}` }, (signal, _, report) =>
        tunnel.run(end, log, report, signal),
      )
    },
  })
