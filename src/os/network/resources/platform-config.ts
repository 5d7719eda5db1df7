import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'
import { cidr, duration, integer, ip, layer, mac } from '../../values.ts'
import { bondSettings, bridgePort, bridgeSettings, vlanSettings, vrfPort, vrfSettings, wireguardSettings } from './link-settings.ts'

/** What the platform says of the network. */
export const PlatformConfig = defineResource({
  type: 'PlatformConfigs.net.talos.dev',
  namespace: 'network',
  displayType: 'PlatformConfig',
  spec: v.object({
    addresses: v.optional(
      v.array(
        v.object({
          address: cidr,
          linkName: v.string(),
          family: v.string(),
          scope: v.string(),
          flags: v.string(),
          announceWithARP: v.optional(v.boolean()),
          priority: v.optional(integer),
          layer: layer,
        }),
      ),
      [],
    ),
    links: v.optional(
      v.array(
        v.object({
          name: v.string(),
          logical: v.boolean(),
          up: v.boolean(),
          mtu: integer,
          kind: v.string(),
          type: v.string(),
          hardwareAddr: v.optional(mac),
          parentName: v.optional(v.string()),
          masterName: v.optional(v.string()),
          slaveIndex: v.optional(integer),
          bridgeSlave: v.optional(bridgePort),
          vrfSlave: v.optional(vrfPort),
          vlan: v.optional(vlanSettings),
          bondMaster: v.optional(bondSettings),
          bridgeMaster: v.optional(bridgeSettings),
          vrfMaster: v.optional(vrfSettings),
          wireguard: v.optional(wireguardSettings),
          layer: layer,
          multicast: v.optional(v.boolean()),
        }),
      ),
      [],
    ),
    routes: v.optional(
      v.array(
        v.object({
          family: v.string(),
          dst: cidr,
          src: ip,
          gateway: ip,
          outLinkName: v.optional(v.string()),
          table: v.string(),
          priority: v.optional(integer),
          scope: v.string(),
          type: v.string(),
          flags: v.string(),
          protocol: v.string(),
          layer: layer,
          mtu: v.optional(integer),
        }),
      ),
      [],
    ),
    hostnames: v.optional(v.array(v.object({ hostname: v.string(), domainname: v.string(), layer: layer })), []),
    resolvers: v.optional(
      v.array(v.object({ dnsServers: v.optional(v.array(ip), []), layer: layer, searchDomains: v.optional(v.array(v.string())) })),
      [],
    ),
    timeServers: v.optional(v.array(v.object({ timeServers: v.optional(v.array(v.string()), []), layer: layer })), []),
    operators: v.optional(
      v.array(
        v.object({
          operator: v.picklist(['dhcp4', 'dhcp6', 'vip']),
          linkName: v.string(),
          requireUp: v.boolean(),
          dhcp4: v.optional(
            v.object({
              routeMetric: integer,
              skipHostnameRequest: v.optional(v.boolean()),
              clientIdentifier: v.optional(v.object({ clientIdentifier: v.string(), duidRawHex: v.optional(v.string()) })),
            }),
          ),
          dhcp6: v.optional(
            v.object({
              routeMetric: integer,
              skipHostnameRequest: v.optional(v.boolean()),
              clientIdentifier: v.optional(v.object({ clientIdentifier: v.string(), duidRawHex: v.optional(v.string()) })),
            }),
          ),
          vip: v.optional(
            v.object({
              ip: ip,
              gratuitousARP: v.boolean(),
              equinixMetal: v.optional(v.object({ projectID: v.string(), deviceID: v.string(), apiToken: v.string() })),
              hcloud: v.optional(v.object({ deviceID: integer, networkID: integer, apiToken: v.string() })),
            }),
          ),
          layer: layer,
        }),
      ),
      [],
    ),
    externalIPs: v.optional(v.array(ip), []),
    probes: v.optional(
      v.array(
        v.object({
          interval: duration,
          failureThreshold: integer,
          tcp: v.optional(v.object({ endpoint: v.string(), timeout: duration })),
          layer: layer,
        }),
      ),
    ),
    metadata: v.optional(
      v.object({
        platform: v.optional(v.string()),
        hostname: v.optional(v.string()),
        region: v.optional(v.string()),
        zone: v.optional(v.string()),
        instanceType: v.optional(v.string()),
        instanceId: v.optional(v.string()),
        providerId: v.optional(v.string()),
        spot: v.optional(v.boolean()),
        internalDNS: v.optional(v.string()),
        externalDNS: v.optional(v.string()),
        tags: v.optional(v.record(v.string(), v.string())),
      }),
    ),
  }),
})
