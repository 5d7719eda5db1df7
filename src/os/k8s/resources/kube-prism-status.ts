import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'

/** Whether the local API load balancer has a healthy endpoint. */
export const KubePrismStatus = defineResource({
  type: 'KubePrismStatuses.kubernetes.talos.dev',
  namespace: 'k8s',
  displayType: 'KubePrismStatus',
  columns: { HOST: '{.host}', HEALTHY: '{.healthy}' },
  spec: v.object({ host: v.string(), healthy: v.boolean() }),
})
