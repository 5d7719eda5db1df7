import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'

/** A listener of the host's caching resolver. */
export const DNSResolveCache = defineResource({
  type: 'DNSResolveCaches.net.talos.dev',
  namespace: 'network',
  displayType: 'DNSResolveCach',
  columns: { Status: '{.status}' },
  spec: v.object({ status: v.string() }),
})
