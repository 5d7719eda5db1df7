import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'
import { integer, ip, layer } from '../../values.ts'

/** A protocol to run on a link: DHCP or a virtual IP. */
export const OperatorSpec = defineResource({
  type: 'OperatorSpecs.net.talos.dev',
  namespace: 'network',
  displayType: 'OperatorSpec',
  sensitive: true,
  spec: v.object({
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
        // The ids of the cloud are read when the address moves, so that they are those of the machine as it is then.
        equinixMetal: v.optional(v.object({ projectID: v.optional(v.string()), deviceID: v.optional(v.string()), apiToken: v.string() })),
        hcloud: v.optional(v.object({ deviceID: v.optional(integer), networkID: v.optional(integer), apiToken: v.string() })),
      }),
    ),
    layer: layer,
  }),
})
