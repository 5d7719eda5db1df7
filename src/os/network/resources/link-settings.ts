/** Kind-specific link settings, shared by specs, statuses and platform configurations. */
import * as v from 'valibot'
import { cidr, duration, integer, ip } from '../../values.ts'

/** A VLAN: its ID and protocol. */
export const vlanSettings = v.object({ vlanID: integer, vlanProtocol: v.string() })

/** Bond settings: distribution of traffic and link monitoring. */
export const bondSettings = v.object({
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
})

/** Bridge settings: STP and VLAN filtering. */
export const bridgeSettings = v.object({
  stp: v.optional(v.object({ enabled: v.boolean() })),
  vlan: v.optional(v.object({ filteringEnabled: v.boolean() })),
})

/** The routing table of a VRF. */
export const vrfSettings = v.object({ table: v.string() })

/** Keys, port and peers of a WireGuard link. */
export const wireguardSettings = v.object({
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
})

/** The bridge a link is a port of. */
export const bridgePort = v.object({ masterName: v.optional(v.string()) })

/** The VRF a link belongs to. */
export const vrfPort = v.object({ masterName: v.optional(v.string()) })
