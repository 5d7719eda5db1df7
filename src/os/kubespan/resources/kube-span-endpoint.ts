import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'
import { hostPort } from '../../values.ts'

/** An address at which a peer was reached. */
export const KubeSpanEndpoint = defineResource({
  type: 'KubeSpanEndpoints.kubespan.talos.dev',
  namespace: 'kubespan',
  displayType: 'KubeSpanEndpoint',
  columns: { Endpoint: '{.endpoint}', 'Affiliate ID': '{.affiliateID}' },
  spec: v.object({ affiliateID: v.string(), endpoint: hostPort }),
})
