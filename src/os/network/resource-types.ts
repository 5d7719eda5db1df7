import { AddressSpec, AddressStatus } from './resources/address.ts'
import { DeviceConfigSpec } from './resources/device-config-spec.ts'
import { EthernetSpec, EthernetStatus } from './resources/ethernet.ts'
import { HardwareAddress } from './resources/hardware-address.ts'
import { DNSResolveCache, DNSUpstream, HostDNSConfig } from './resources/host-dns.ts'
import { HostnameSpec, HostnameStatus } from './resources/hostname.ts'
import { LinkSpec, LinkStatus } from './resources/link.ts'
import { LinkAliasSpec } from './resources/link-alias-spec.ts'
import { LinkRefresh } from './resources/link-refresh.ts'
import { NetworkStatus } from './resources/network-status.ts'
import { NfTablesChain } from './resources/nf-tables-chain.ts'
import { NodeAddress, NodeAddressFilter, NodeAddressSortAlgorithm } from './resources/node-address.ts'
import { OperatorSpec } from './resources/operator-spec.ts'
import { PlatformConfig } from './resources/platform-config.ts'
import { ProbeSpec, ProbeStatus } from './resources/probe.ts'
import { ResolverSpec, ResolverStatus } from './resources/resolver.ts'
import { RouteSpec, RouteStatus } from './resources/route.ts'
import { RoutingRuleSpec, RoutingRuleStatus } from './resources/routing-rule.ts'
import { TimeServerSpec, TimeServerStatus } from './resources/time-server.ts'

/** The resource types of this area. */
export const resources = [
  AddressSpec,
  AddressStatus,
  DeviceConfigSpec,
  DNSResolveCache,
  DNSUpstream,
  EthernetSpec,
  EthernetStatus,
  HardwareAddress,
  HostDNSConfig,
  HostnameSpec,
  HostnameStatus,
  LinkAliasSpec,
  LinkRefresh,
  LinkSpec,
  LinkStatus,
  NetworkStatus,
  NfTablesChain,
  NodeAddressFilter,
  NodeAddressSortAlgorithm,
  NodeAddress,
  OperatorSpec,
  PlatformConfig,
  ProbeSpec,
  ProbeStatus,
  ResolverSpec,
  ResolverStatus,
  RouteSpec,
  RouteStatus,
  RoutingRuleSpec,
  RoutingRuleStatus,
  TimeServerSpec,
  TimeServerStatus,
]
