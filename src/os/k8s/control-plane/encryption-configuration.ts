import { createHash } from 'node:crypto'
import { kubeYaml } from '../../../kube/yaml.ts'

/** The name of a secretbox key by its content: the same on every node and at every time, unlike that of its place. */
const nameOf = (secret: string): string => `key-${createHash('sha256').update(Buffer.from(secret, 'base64')).digest('hex').slice(0, 12)}`

/**
 * The API server's encryption of secrets in etcd: the configured keys, the newest kind first; unencrypted data can still be read.
 *
 * The key of the configuration is `key2`, the name that Talos gives it. While keys are replaced, values are written under a name
 * that follows from the key itself, since nodes disagree for a moment about which key is the configuration's. Every node reads its
 * key under both names.
 */
export function encryptionConfiguration(
  { secretboxEncryptionSecret: own, aesCBCEncryptionSecret }: { secretboxEncryptionSecret: string; aesCBCEncryptionSecret: string },
  secretboxKeys: readonly string[] = [],
): string {
  const key = (name: string, secret: string) => ({ name, secret })
  const placed = own ? [key('key2', own)] : []
  const all = [...new Set([...secretboxKeys, ...(own ? [own] : [])])].map((secret) => key(nameOf(secret), secret))
  const keys = secretboxKeys.length > 0 ? [...all, ...placed] : [...placed, ...all]
  const providers = [
    ...(keys.length > 0 ? [{ secretbox: { keys } }] : []),
    ...(aesCBCEncryptionSecret ? [{ aescbc: { keys: [key('key1', aesCBCEncryptionSecret)] } }] : []),
    { identity: {} },
  ]
  return kubeYaml({
    apiVersion: 'apiserver.config.k8s.io/v1',
    kind: 'EncryptionConfiguration',
    resources: [{ resources: ['secrets'], providers }],
  })
}
