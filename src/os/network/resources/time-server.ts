import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'
import { layer } from '../../values.ts'

/** The desired time servers. */
export const TimeServerSpec = defineResource({
  type: 'TimeServerSpecs.net.talos.dev',
  namespace: 'network',
  displayType: 'TimeServerSpec',
  spec: v.object({ timeServers: v.optional(v.array(v.string()), []), layer: layer }),
})

/** The time servers in use. */
export const TimeServerStatus = defineResource({
  type: 'TimeServerStatuses.net.talos.dev',
  namespace: 'network',
  displayType: 'TimeServerStatus',
  aliases: ['timeserver', 'timeservers'],
  columns: { Timeservers: '{.timeServers}' },
  spec: v.object({ timeServers: v.optional(v.array(v.string()), []) }),
})
