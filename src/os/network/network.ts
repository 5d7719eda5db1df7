import type { Controller } from '../../cosi/controller.ts'
import { parameterValues, parseCommandLine } from '../../wire/command-line.ts'
import type { Area, Elect, Machine } from '../area.ts'
import type { Kernel } from '../kernel.ts'
import { hostname } from './api/hostname.ts'
import { netstat } from './api/netstat.ts'
import { packetCapture } from './api/packet-capture.ts'
import { type BootNetwork, silentBoot } from './boot-network.ts'
import { bootNetwork } from './boot-parameters.ts'
import { applyAddresses, configAddresses, mergeAddresses } from './controllers/address/address.ts'
import { publishAddresses } from './controllers/address/address-event.ts'
import { configAddressOrder, observeNodeAddresses } from './controllers/address/node-address.ts'
import { configVips } from './controllers/address/vip.ts'
import { configNetworkFiles } from './controllers/dns/etc-file.ts'
import { configHostDns, observeDnsUpstreams, resolveMembers, serveHostDns } from './controllers/dns/host-dns.ts'
import { applyResolvers, configResolvers, mergeResolvers } from './controllers/dns/resolver.ts'
import { applyFirewall, configFirewall } from './controllers/firewall.ts'
import { applyHostname, configHostname, mergeHostname } from './controllers/hostname.ts'
import { configDevices } from './controllers/link/device-config.ts'
import { applyEthernet, configEthernet, observeEthernet } from './controllers/link/ethernet.ts'
import { observeHardwareAddress } from './controllers/link/hardware-address.ts'
import { applyLinks, configLinks, mergeLinks } from './controllers/link/link.ts'
import { applyLinkAliases, configLinkAliases } from './controllers/link/link-alias.ts'
import { observeAddresses, observeLinks, observeRoutes } from './controllers/observe.ts'
import { applyOperators, configOperators, mergeOperators } from './controllers/operator.ts'
import {
  applyPlatformConfig,
  keepPlatformConfig,
  loadPlatformConfig,
  recallPlatformConfig,
  reportToPlatform,
} from './controllers/platform.ts'
import { reportEvents } from './controllers/platform-events.ts'
import { configProbes, connectTcp, mergeProbes, runProbes } from './controllers/probe.ts'
import { applyRoutes, configRoutes, mergeRoutes } from './controllers/route/route.ts'
import { applyRoutingRules, configRoutingRules, mergeRoutingRules, observeRoutingRules } from './controllers/route/routing-rule.ts'
import { observeNetworkStatus } from './controllers/status.ts'
import { applyTimeServers, configTimeServers, mergeTimeServers } from './controllers/time-server.ts'
import { Resolver } from './dns/resolver.ts'
import { packetFilter } from './firewall/nft.ts'
import { guestinfoReader } from './guestinfo.ts'
import { cloudAddresses } from './operators/cloud/clouds.ts'
import { dhcp4Operator } from './operators/dhcp4.ts'
import { dhcp6Operator } from './operators/dhcp6.ts'
import { machineClock } from './operators/operator.ts'
import { vipOperator } from './operators/vip.ts'
import { engineSettings } from './platform/container-engine.ts'
import { platforms } from './platform/platforms.ts'
import { fetchText, openPlatform } from './platform/transport.ts'
import { resources } from './resource-types.ts'

/** The network area: declares, applies and observes links, addresses, routes and names. */
export const network: Area = {
  name: 'network',
  resources,
  parts({ clock, deliveries, elect, events, kernel, log, podNetworks, spawn, store }) {
    const commandLine = kernel.mode === 'container' ? '' : kernel.files.readText('/proc/cmdline')
    const boot = bootOf(commandLine, log)
    return {
      methods: [hostname, netstat(kernel, podNetworks), packetCapture(kernel)],
      controllers: [
        ...linkControllers(kernel, boot),
        ...operatorControllers(kernel, boot, elect),
        ...routingRuleControllers(kernel),
        configAddressOrder,
        observeNodeAddresses,
        publishAddresses({ events }),
        configHostname(boot),
        ...platformControllers({ clock, deliveries, events, kernel, log, spawn, store }, commandLine),
        mergeHostname,
        applyHostname(kernel),
        ...declaredControllers(kernel, boot),
        configFirewall,
        applyFirewall(packetFilter({ spawn, kernel })),
        ...dnsControllers(kernel),
        configProbes,
        mergeProbes,
        runProbes(connectTcp),
        observeNetworkStatus,
      ],
    }
  },
}

const linkControllers = (kernel: Kernel, boot: BootNetwork): Controller[] => [
  observeLinks(kernel),
  observeHardwareAddress,
  observeAddresses(kernel),
  observeRoutes(kernel),
  configDevices(boot),
  configLinks(kernel, boot),
  mergeLinks,
  applyLinks(kernel),
  configEthernet,
  applyEthernet(kernel),
  observeEthernet(kernel),
  configLinkAliases,
  applyLinkAliases(kernel),
]

const operatorControllers = (kernel: Kernel, boot: BootNetwork, elect: Elect): Controller[] => [
  configOperators(kernel, boot),
  configVips(boot),
  mergeOperators,
  applyOperators({
    dhcp4: dhcp4Operator(kernel.packet),
    dhcp6: dhcp6Operator(kernel.packet),
    vip: vipOperator(kernel.packet, elect, cloudAddresses({ fetch: fetchText, sleep: machineClock.sleep })),
  }),
]

const routingRuleControllers = (kernel: Kernel): Controller[] => [
  configRoutingRules,
  mergeRoutingRules,
  applyRoutingRules(kernel),
  observeRoutingRules(kernel),
]

/** The network as the platform describes it: loaded from there, and on a machine kept on STATE for the next boot. */
function platformControllers(
  { kernel, store, spawn, ...machine }: Pick<Machine, 'clock' | 'deliveries' | 'events' | 'kernel' | 'log' | 'spawn' | 'store'>,
  commandLine: string,
): Controller[] {
  const platform = kernel.mode === 'container' ? kernel.mode : platformOf(commandLine)
  const guestinfo = guestinfoReader({ spawn, files: kernel.files })
  const onPlatform = {
    platform: platforms[platform],
    store,
    open: (signal: AbortSignal) => openPlatform({ ...kernel, guestinfo, store, commandLine }, signal),
  }
  return [
    loadPlatformConfig(onPlatform),
    reportToPlatform(onPlatform),
    reportEvents({ ...machine, platform: platforms[platform], commandLine }),
    ...(kernel.mode === 'container' ? [] : [recallPlatformConfig(kernel), keepPlatformConfig(kernel)]),
    applyPlatformConfig(platform, kernel.mode === 'container' ? engineSettings(kernel) : undefined),
  ]
}

/** Resolvers, time servers, addresses and routes: each from the configuration, merged with the other layers, and applied. */
const declaredControllers = (kernel: Kernel, boot: BootNetwork): Controller[] => [
  configResolvers(boot),
  mergeResolvers,
  applyResolvers,
  configTimeServers(boot),
  mergeTimeServers,
  applyTimeServers,
  configAddresses(boot),
  mergeAddresses,
  applyAddresses(kernel),
  configRoutes(boot),
  mergeRoutes,
  applyRoutes(kernel),
]

function dnsControllers(kernel: Kernel): Controller[] {
  const resolver = new Resolver()
  return [
    configHostDns(kernel),
    observeDnsUpstreams(resolver),
    resolveMembers(resolver),
    serveHostDns(resolver),
    configNetworkFiles(kernel),
  ]
}

/** Network settings of a machine's command line. A container sees its host's, which does not apply to it. */
function bootOf(commandLine: string, log: Machine['log']): BootNetwork {
  if (commandLine === '') return silentBoot
  const boot = bootNetwork(parseCommandLine(commandLine))
  for (const complaint of boot.complaints) log.warn('invalid kernel parameter ignored', { reason: complaint })
  return boot
}

/** The platform a machine runs on; `metal` unless specified. */
const platformOf = (commandLine: string): string =>
  process.env.PLATFORM || parameterValues(parseCommandLine(commandLine), 'talos.platform').at(-1) || 'metal'
