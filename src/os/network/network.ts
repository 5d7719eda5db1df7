import type { Area } from '../area.ts'
import { hostname } from './api/hostname.ts'
import { netstat } from './api/netstat.ts'
import { applyAddresses, configAddresses, mergeAddresses } from './controllers/address.ts'
import { configDevices } from './controllers/device-config.ts'
import { configNetworkFiles } from './controllers/etc-file.ts'
import { configHostDns, observeDnsUpstreams, serveHostDns } from './controllers/host-dns.ts'
import { applyHostname, configHostname, mergeHostname, platformHostname } from './controllers/hostname.ts'
import { applyLinks, configLinks, mergeLinks } from './controllers/link.ts'
import { configAddressOrder, observeNodeAddresses } from './controllers/node-address.ts'
import { observeAddresses, observeLinks, observeRoutes } from './controllers/observe.ts'
import { applyOperators, configOperators, mergeOperators } from './controllers/operator.ts'
import { applyResolvers, configResolvers, mergeResolvers } from './controllers/resolver.ts'
import { applyRoutes, configRoutes, mergeRoutes } from './controllers/route.ts'
import { applyRoutingRules, configRoutingRules, mergeRoutingRules, observeRoutingRules } from './controllers/routing-rule.ts'
import { observeNetworkStatus } from './controllers/status.ts'
import { applyTimeServers, configTimeServers, mergeTimeServers } from './controllers/time-server.ts'
import { Resolver } from './dns/resolver.ts'
import { resources } from './nouns.ts'
import { dhcp4Operator } from './operators/dhcp4.ts'
import { dhcp6Operator } from './operators/dhcp6.ts'

/** Links, addresses, routes, names: what is declared, what is true. */
export const network: Area = {
  name: 'network',
  resources,
  methods: ({ kernel }) => [hostname, netstat(kernel)],
  controllers({ kernel }) {
    const resolver = new Resolver()
    return [
      observeLinks(kernel),
      observeAddresses(kernel),
      observeRoutes(kernel),
      configDevices(),
      configLinks(kernel),
      mergeLinks,
      applyLinks(kernel),
      configOperators(kernel),
      mergeOperators,
      applyOperators({ dhcp4: dhcp4Operator(kernel.packet), dhcp6: dhcp6Operator(kernel.packet) }),
      configRoutingRules,
      mergeRoutingRules,
      applyRoutingRules(kernel),
      observeRoutingRules(kernel),
      configAddressOrder,
      observeNodeAddresses,
      configHostname,
      platformHostname(kernel),
      mergeHostname,
      applyHostname(kernel),
      configResolvers,
      mergeResolvers,
      applyResolvers,
      configTimeServers,
      mergeTimeServers,
      applyTimeServers,
      configAddresses(),
      mergeAddresses,
      applyAddresses(kernel),
      configRoutes(),
      mergeRoutes,
      applyRoutes(kernel),
      configHostDns(kernel),
      observeDnsUpstreams(resolver),
      serveHostDns(resolver),
      configNetworkFiles(kernel),
      observeNetworkStatus,
    ]
  },
}
