import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'

/** A name server that queries are forwarded to, and its health. */
export const DNSUpstream = defineResource({
  type: 'DNSUpstreams.net.talos.dev',
  namespace: 'network',
  displayType: 'DNSUpstream',
  columns: { Healthy: '{.healthy}', Address: '{.addr}' },
  spec: v.object({ healthy: v.picklist(['true', 'false']), addr: v.string() }),
})
