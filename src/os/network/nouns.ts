import { AddressSpec } from './resources/address-spec.ts'
import { AddressStatus } from './resources/address-status.ts'
import { DeviceConfigSpec } from './resources/device-config-spec.ts'
import { DNSResolveCache } from './resources/dns-resolve-cache.ts'
import { DNSUpstream } from './resources/dns-upstream.ts'
import { EthernetSpec } from './resources/ethernet-spec.ts'
import { EthernetStatus } from './resources/ethernet-status.ts'
import { HardwareAddress } from './resources/hardware-address.ts'
import { HostDNSConfig } from './resources/host-dns-config.ts'
import { HostnameSpec } from './resources/hostname-spec.ts'
import { HostnameStatus } from './resources/hostname-status.ts'
import { LinkAliasSpec } from './resources/link-alias-spec.ts'
import { LinkRefresh } from './resources/link-refresh.ts'
import { LinkSpec } from './resources/link-spec.ts'
import { LinkStatus } from './resources/link-status.ts'
import { NetworkStatus } from './resources/network-status.ts'
import { NfTablesChain } from './resources/nf-tables-chain.ts'
import { NodeAddress } from './resources/node-address.ts'
import { NodeAddressFilter } from './resources/node-address-filter.ts'
import { NodeAddressSortAlgorithm } from './resources/node-address-sort-algorithm.ts'
import { OperatorSpec } from './resources/operator-spec.ts'
import { PlatformConfig } from './resources/platform-config.ts'
import { ProbeSpec } from './resources/probe-spec.ts'
import { ProbeStatus } from './resources/probe-status.ts'
import { ResolverSpec } from './resources/resolver-spec.ts'
import { ResolverStatus } from './resources/resolver-status.ts'
import { RouteSpec } from './resources/route-spec.ts'
import { RouteStatus } from './resources/route-status.ts'
import { RoutingRuleSpec } from './resources/routing-rule-spec.ts'
import { RoutingRuleStatus } from './resources/routing-rule-status.ts'
import { TimeServerSpec } from './resources/time-server-spec.ts'
import { TimeServerStatus } from './resources/time-server-status.ts'

/** The kinds of resources of this area. */
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
