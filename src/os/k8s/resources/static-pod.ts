import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'

/** A pod that the kubelet runs without the API server. */
export const StaticPod = defineResource({
  type: 'StaticPods.kubernetes.talos.dev',
  namespace: 'k8s',
  displayType: 'StaticPod',
  spec: v.unknown(),
})

/** The status of a static pod, as the kubelet reports it. */
export const StaticPodStatus = defineResource({
  type: 'StaticPodStatuses.kubernetes.talos.dev',
  namespace: 'k8s',
  displayType: 'StaticPodStatus',
  aliases: ['podstatus'],
  columns: { Ready: '{.conditions[?(@.type=="Ready")].status}' },
  spec: v.unknown(),
})

/** Where the kubelet fetches its static pods from. */
export const StaticPodServerStatus = defineResource({
  type: 'StaticPodServerStatuses.kubernetes.talos.dev',
  namespace: 'k8s',
  displayType: 'StaticPodServerStatus',
  spec: v.object({ url: v.string() }),
})
