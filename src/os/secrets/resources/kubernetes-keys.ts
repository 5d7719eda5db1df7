import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'

/** Keys of Kubernetes beside those of its root secrets, while one of these is being replaced. */
export const KubernetesKeys = defineResource({
  type: 'KubernetesKeys.secrets.ichor.dev',
  namespace: 'secrets',
  displayType: 'KubernetesKeys',
  initials: false,
  sensitive: true,
  spec: v.object({
    /** Public keys, base64 of PEM. */
    acceptedServiceAccountKeys: v.array(v.string()),
    /** Base64; the first one encrypts. */
    secretboxKeys: v.array(v.string()),
  }),
})
