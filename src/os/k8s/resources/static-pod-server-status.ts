import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'

/** Where the kubelet fetches its static pods from. */
export const StaticPodServerStatus = defineResource({
  type: 'StaticPodServerStatuses.kubernetes.talos.dev',
  namespace: 'k8s',
  displayType: 'StaticPodServerStatus',
  spec: v.object({ url: v.string() }),
})
