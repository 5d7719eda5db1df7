import { stringify } from 'yaml'

/** How the API server encrypts secrets in etcd: with the keys that are set, the newest kind first; plain is still read. */
export function encryptionConfiguration(keys: { secretboxEncryptionSecret: string; aesCBCEncryptionSecret: string }): string {
  const key = (name: string, secret: string) => ({ keys: [{ name, secret }] })
  const providers = [
    ...(keys.secretboxEncryptionSecret ? [{ secretbox: key('key2', keys.secretboxEncryptionSecret) }] : []),
    ...(keys.aesCBCEncryptionSecret ? [{ aescbc: key('key1', keys.aesCBCEncryptionSecret) }] : []),
    { identity: {} },
  ]
  return stringify({
    apiVersion: 'apiserver.config.k8s.io/v1',
    kind: 'EncryptionConfiguration',
    resources: [{ resources: ['secrets'], providers }],
  })
}
