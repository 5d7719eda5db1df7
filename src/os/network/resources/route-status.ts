import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'
import { cidr, integer, ip } from '../../values.ts'

/** A route the kernel has. */
export const RouteStatus = defineResource({
  type: 'RouteStatuses.net.talos.dev',
  namespace: 'network',
  displayType: 'RouteStatus',
  aliases: ['route', 'routes'],
  columns: { Destination: '{.dst}', Gateway: '{.gateway}', Link: '{.outLinkName}', Metric: '{.priority}' },
  spec: v.object({
    family: v.string(),
    dst: cidr,
    src: ip,
    gateway: ip,
    outLinkIndex: v.optional(integer),
    outLinkName: v.optional(v.string()),
    table: v.string(),
    priority: integer,
    scope: v.string(),
    type: v.string(),
    flags: v.string(),
    protocol: v.string(),
    mtu: v.optional(integer),
  }),
})
