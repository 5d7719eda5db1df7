import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'
import { cidr, integer, layer } from '../../values.ts'

const rule = {
  family: v.string(),
  src: cidr,
  dst: cidr,
  table: v.string(),
  priority: integer,
  action: v.string(),
  iifName: v.optional(v.string()),
  oifName: v.optional(v.string()),
  fwMark: v.optional(integer),
  fwMask: v.optional(integer),
}

/** A routing rule the kernel should have. */
export const RoutingRuleSpec = defineResource({
  type: 'RoutingRuleSpecs.net.talos.dev',
  namespace: 'network',
  displayType: 'RoutingRuleSpec',
  spec: v.object({ ...rule, layer }),
})

/** A routing rule the kernel has. */
export const RoutingRuleStatus = defineResource({
  type: 'RoutingRuleStatuses.net.talos.dev',
  namespace: 'network',
  displayType: 'RoutingRuleStatus',
  aliases: ['routingrule', 'routingrules'],
  columns: { Src: '{.src}', Dst: '{.dst}', Table: '{.table}', Priority: '{.priority}' },
  spec: v.object(rule),
})
