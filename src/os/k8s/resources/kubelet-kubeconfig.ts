import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'

/** Tells that the kubelet has a kubeconfig of its own. */
export const KubeletKubeconfig = defineResource({
  type: 'KubeletKubeconfigs.kubernetes.talos.dev',
  namespace: 'k8s',
  displayType: 'KubeletKubeconfig',
  columns: { Hash: '{.hash}' },
  spec: v.object({ hash: v.string() }),
})
