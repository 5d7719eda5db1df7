import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'

/** How a static pod fares, as the kubelet tells. */
export const StaticPodStatus = defineResource({
  type: 'StaticPodStatuses.kubernetes.talos.dev',
  namespace: 'k8s',
  displayType: 'StaticPodStatus',
  aliases: ['podstatus'],
  columns: { Ready: '{.conditions[?(@.type=="Ready")].status}' },
  spec: v.unknown(),
})
