import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'
import { cidr, integer, ip, layer } from '../../values.ts'

/** A route the kernel should have. */
export const RouteSpec = defineResource({
  type: 'RouteSpecs.net.talos.dev',
  namespace: 'network',
  displayType: 'RouteSpec',
  spec: v.object({
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
})

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
