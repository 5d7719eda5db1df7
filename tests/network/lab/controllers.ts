/** The controllers of the network that a machine of a story is made of; each list stands on the one before it. */
import type { Controller } from '../../../src/cosi/controller.ts'
import type { Kernel } from '../../../src/os/kernel.ts'
import { applyAddresses, configAddresses, mergeAddresses } from '../../../src/os/network/controllers/address/address.ts'
import { mergeResolvers } from '../../../src/os/network/controllers/dns/resolver.ts'
import { mergeHostname } from '../../../src/os/network/controllers/hostname.ts'
import { configDevices } from '../../../src/os/network/controllers/link/device-config.ts'
import { applyLinks, configLinks, mergeLinks } from '../../../src/os/network/controllers/link/link.ts'
import { observeAddresses, observeLinks, observeRoutes } from '../../../src/os/network/controllers/observe.ts'
import { applyOperators, configOperators, mergeOperators } from '../../../src/os/network/controllers/operator.ts'
import { applyRoutes, configRoutes, mergeRoutes } from '../../../src/os/network/controllers/route/route.ts'
import { applyRoutingRules, configRoutingRules, mergeRoutingRules } from '../../../src/os/network/controllers/route/routing-rule.ts'
import { mergeTimeServers } from '../../../src/os/network/controllers/time-server.ts'
import { dhcp4Operator } from '../../../src/os/network/operators/dhcp4.ts'
import { dhcp6Operator } from '../../../src/os/network/operators/dhcp6.ts'

/** Links, addresses and routes, from what is declared to what the kernel has. */
export const addressing = (kernel: Kernel): Controller[] => [
  observeLinks(kernel),
  observeAddresses(kernel),
  observeRoutes(kernel),
  configDevices(),
  configLinks(kernel),
  mergeLinks,
  applyLinks(kernel),
  configAddresses(),
  mergeAddresses,
  applyAddresses(kernel),
  configRoutes(),
  mergeRoutes,
  applyRoutes(kernel),
]

/** Which table a packet is looked up in. */
export const ruling = (kernel: Kernel): Controller[] => [configRoutingRules, mergeRoutingRules, applyRoutingRules(kernel)]

/** Addresses that are requested, and all that comes with them. */
export const leasing = (kernel: Kernel): Controller[] => [
  configOperators(kernel),
  mergeOperators,
  applyOperators({ dhcp4: dhcp4Operator(kernel.packet), dhcp6: dhcp6Operator(kernel.packet) }),
  mergeHostname,
  mergeResolvers,
  mergeTimeServers,
]
