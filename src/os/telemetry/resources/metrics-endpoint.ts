import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'

/** Where metrics are served, and for whom. */
export const MetricsEndpoint = defineResource({
  type: 'MetricsEndpoints.runtime.ichor.dev',
  namespace: 'runtime',
  displayType: 'MetricsEndpoint',
  initials: false,
  sensitive: true,
  columns: { Listen: '{.listen}' },
  spec: v.object({
    listen: v.string(),
    /** PEM of the authorities of clients; empty when no certificate is admitted. */
    clientCA: v.string(),
    /** SHA-256 of the token, hexadecimal; empty when no token is admitted. */
    tokenDigest: v.string(),
  }),
})
