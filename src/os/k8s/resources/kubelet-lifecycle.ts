import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'

/** Held while the kubelet's pods may run. */
export const KubeletLifecycle = defineResource({
  type: 'KubeletLifecycles.kubernetes.talos.dev',
  namespace: 'k8s',
  displayType: 'KubeletLifecycle',
  spec: v.object({}),
})
