import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'

/** A pod that the kubelet runs without asking the API server. */
export const StaticPod = defineResource({
  type: 'StaticPods.kubernetes.talos.dev',
  namespace: 'k8s',
  displayType: 'StaticPod',
  spec: v.unknown(),
})
