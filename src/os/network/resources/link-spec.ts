import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'
import { cidr, duration, integer, ip, layer, mac } from '../../values.ts'

/** A link that should be there, and how. */
export const LinkSpec = defineResource({
  type: 'LinkSpecs.net.talos.dev',
  namespace: 'network',
  displayType: 'LinkSpec',
  sensitive: true,
  spec: v.object({
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
    bridgeSlave: v.optional(v.object({ masterName: v.optional(v.string()) })),
    vrfSlave: v.optional(v.object({ masterName: v.optional(v.string()) })),
    vlan: v.optional(v.object({ vlanID: integer, vlanProtocol: v.string() })),
    bondMaster: v.optional(
      v.object({
        mode: v.string(),
        xmitHashPolicy: v.string(),
        lacpRate: v.string(),
        arpValidate: v.string(),
        arpAllTargets: v.string(),
        primary: v.optional(integer),
        primaryReselect: v.string(),
        failOverMac: v.string(),
        adSelect: v.optional(v.string()),
        miimon: v.optional(integer),
        updelay: v.optional(integer),
        downdelay: v.optional(integer),
        arpInterval: v.optional(integer),
        resendIgmp: v.optional(integer),
        minLinks: v.optional(integer),
        lpInterval: v.optional(integer),
        packetsPerSlave: v.optional(integer),
        numPeerNotif: v.optional(integer),
        tlbLogicalLb: v.optional(integer),
        allSlavesActive: v.optional(integer),
        useCarrier: v.optional(v.boolean()),
        adActorSysPrio: v.optional(integer),
        adUserPortKey: v.optional(integer),
        peerNotifyDelay: v.optional(integer),
        arpIpTargets: v.optional(v.array(ip)),
        nsIp6Targets: v.optional(v.array(ip)),
        adLacpActive: v.optional(v.string()),
        missedMax: v.optional(integer),
      }),
    ),
    bridgeMaster: v.optional(
      v.object({ stp: v.optional(v.object({ enabled: v.boolean() })), vlan: v.optional(v.object({ filteringEnabled: v.boolean() })) }),
    ),
    vrfMaster: v.optional(v.object({ table: v.string() })),
    wireguard: v.optional(
      v.object({
        privateKey: v.optional(v.string()),
        publicKey: v.optional(v.string()),
        listenPort: integer,
        firewallMark: integer,
        peers: v.optional(
          v.array(
            v.object({
              publicKey: v.string(),
              presharedKey: v.string(),
              endpoint: v.string(),
              persistentKeepaliveInterval: duration,
              allowedIPs: v.optional(v.array(cidr), []),
            }),
          ),
          [],
        ),
      }),
    ),
    layer: layer,
    multicast: v.optional(v.boolean()),
  }),
})
