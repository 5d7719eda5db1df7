import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'

/** Kubernetes objects to apply when the cluster is bootstrapped. */
export const Manifest = defineResource({
  type: 'Manifests.kubernetes.talos.dev',
  namespace: 'controlplane',
  displayType: 'Manifest',
  spec: v.array(v.unknown()),
})
