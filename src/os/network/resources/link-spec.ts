import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'
import { integer, layer, mac } from '../../values.ts'
import { bondSettings, bridgePort, bridgeSettings, vlanSettings, vrfPort, vrfSettings, wireguardSettings } from './link-settings.ts'

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
})
