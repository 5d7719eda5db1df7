import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'

/** Kubeconfigs of the control plane's components. */
export const KubernetesSecret = defineResource({
  type: 'KubernetesSecrets.secrets.talos.dev',
  namespace: 'secrets',
  displayType: 'KubernetesSecret',
  sensitive: true,
  spec: v.object({
    schedulerKubeconfig: v.string(),
    controllerManagerKubeconfig: v.string(),
    localhostAdminKubeconfig: v.string(),
    adminKubeconfig: v.string(),
  }),
})
