import { stringify } from 'yaml'

/** The API server's encryption of secrets in etcd: the configured keys, the newest kind first; unencrypted data can still be read. */
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
