import { createPublicKey } from 'node:crypto'
import { base64, described, listOf, section } from '../../../document/fields.ts'
import { defineDocument } from '../../../document/kind.ts'

/** Keys of Kubernetes beside those of the v1alpha1 document, while one of these is being replaced. */
export const KubernetesKeysConfig = defineDocument({
  kind: 'KubernetesKeysConfig',
  description: 'More keys of Kubernetes on a control plane, while one is being replaced.',
  schema: section({
    acceptedServiceAccountKeys: described(
      listOf(base64),
      'Public keys, base64 of PEM: tokens of service accounts that their private keys signed are accepted.',
    ),
    secretboxKeys: described(
      listOf(base64),
      'All keys of the secretbox that secrets in etcd may be encrypted with, base64 of 32 bytes. The first one encrypts.',
    ),
  }),
  rules({ acceptedServiceAccountKeys = [], secretboxKeys = [] }, report) {
    for (const [index, key] of acceptedServiceAccountKeys.entries())
      if (!isPublicKey(key)) report.error(['acceptedServiceAccountKeys', index], 'not a public key: base64 of PEM is expected')
    for (const [index, key] of secretboxKeys.entries()) {
      const { length } = Buffer.from(key, 'base64')
      if (length !== 32) report.error(['secretboxKeys', index], `expected base64 of 32 bytes, got ${length} bytes`)
    }
  },
})

function isPublicKey(key: string): boolean {
  const pem = Buffer.from(key, 'base64').toString()
  try {
    return pem.includes('-----BEGIN PUBLIC KEY-----') && createPublicKey(pem).type === 'public'
  } catch {
    return false
  }
}
