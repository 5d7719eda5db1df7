import { type Controller, defineController, exclusive, weak } from '../../../cosi/controller.ts'
import { splitHostPort } from '../../../wire/host-port.ts'
import type { Kernel } from '../../kernel.ts'
import { LinkStatus } from '../../network/resources/link.ts'
import { isHeard, linkNames, lookInterval } from '../link.ts'
import { SiderolinkConfig, SiderolinkStatus, SiderolinkTunnel } from '../resources/siderolink.ts'

/** Milliseconds between two looks until the server answered. */
const soon = 1_000

/** Publishes whether the management server was heard lately. */
export const observeSiderolink = (kernel: Pick<Kernel, 'net' | 'wireguard'>): Controller =>
  defineController({
    name: 'siderolink.StatusController',
    inputs: {
      config: weak(SiderolinkConfig, { id: 'siderolink' }),
      tunnels: weak(SiderolinkTunnel, { id: 'siderolink-tunnel' }),
      links: weak(LinkStatus),
    },
    outputs: { status: exclusive(SiderolinkStatus) },
    reconcile({ config, tunnels, links, status, clock, wakeIn, log }) {
      const server = config.get('siderolink')?.spec
      if (!server) return
      const grpcTunnel = tunnels.get('siderolink-tunnel') !== undefined
      const linkName = grpcTunnel ? linkNames.tunnel : linkNames.datagrams
      const connected = links.get(linkName) !== undefined && isHeard(kernel, linkName, clock.now().getTime() / 1000)
      const before = status.get('siderolink-status')?.spec.connected
      const { host } = splitHostPort(server.host, 443)
      if (connected !== (before ?? false))
        log.info(connected ? 'connected to the management server' : 'management server is silent', { host })
      status.put('siderolink-status', { host, connected, linkName, grpcTunnel })
      wakeIn(connected ? lookInterval : soon)
    },
  })
