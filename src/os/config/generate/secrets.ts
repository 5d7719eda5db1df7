/**
 * The secrets of a cluster: everything in its configurations that must stay secret and cannot be generated again.
 *
 * Kept as one YAML file, from which configurations and client credentials can be generated at any time.
 */
import { randomBytes, randomInt } from 'node:crypto'
import * as v from 'valibot'
import { isMap } from 'yaml'
import { ConfigError } from '../../../document/config-error.ts'
import { decode } from '../../../document/decode.ts'
import { parseStream } from '../../../document/stream.ts'
import { fromBase64, newCA, type PemPair, toBase64 } from '../../../pki/certificate.ts'
import { type KeyPair, newRsaKey } from '../../../pki/key.ts'
import type { ConfigContainer } from '../container.ts'
import { toYaml } from './yaml.ts'

const pair = v.object({ crt: v.string(), key: v.string() })

const schema = v.object({
  cluster: v.object({ id: v.string(), secret: v.string() }),
  secrets: v.object({
    bootstraptoken: v.string(),
    secretboxencryptionsecret: v.optional(v.string()),
    aescbcencryptionsecret: v.optional(v.string()),
  }),
  trustdinfo: v.object({ token: v.string() }),
  certs: v.object({
    etcd: pair,
    k8s: pair,
    k8saggregator: pair,
    k8sserviceaccount: v.object({ key: v.string() }),
    os: pair,
  }),
})

/** The secrets, keyed like their file; certificates and keys are base64 of PEM. */
export type SecretsBundle = v.InferOutput<typeof schema>

const alphabet = 'abcdefghijklmnopqrstuvwxyz0123456789'
const word = (length: number) => Array.from({ length }, () => alphabet[randomInt(alphabet.length)]).join('')

/** A token for joining: six characters, a dot, sixteen characters. */
export const newToken = (): string => `${word(6)}.${word(16)}`

const encoded = ({ crt, key }: PemPair) => ({ crt: toBase64(crt), key: toBase64(key) })

/** Generates new secrets; most of the time goes into the RSA key of the service accounts, unless one is given. */
export async function newSecrets({
  now = new Date(),
  serviceAccount = newRsaKey(),
}: {
  now?: Date
  serviceAccount?: KeyPair | Promise<KeyPair>
} = {}): Promise<SecretsBundle> {
  const authority = (organization: string | undefined, kind: 'ed25519' | 'ecdsa') =>
    encoded(newCA({ subject: organization ? { organizations: [organization] } : {}, kind, now }))
  return {
    cluster: { id: randomBytes(32).toString('base64url').padEnd(44, '='), secret: randomBytes(32).toString('base64') },
    secrets: { bootstraptoken: newToken(), secretboxencryptionsecret: randomBytes(32).toString('base64') },
    trustdinfo: { token: newToken() },
    certs: {
      etcd: authority('etcd', 'ecdsa'),
      k8s: authority('kubernetes', 'ecdsa'),
      k8saggregator: authority(undefined, 'ecdsa'),
      k8sserviceaccount: { key: toBase64((await serviceAccount).pem) },
      os: authority('talos', 'ed25519'),
    },
  }
}

/** Parses a file of secrets. Throws ConfigError with everything that is wrong. */
export function parseSecrets(text: string | Uint8Array): SecretsBundle {
  const { documents, lines } = parseStream(text)
  const [document] = documents
  if (!document || !isMap(document.contents)) throw new ConfigError([{ message: 'the file holds no secrets' }])
  const { value, issues } = decode(document.contents, schema, { document, lines })
  if (!value) throw new ConfigError(issues)
  return value
}

/** Writes the file of secrets. */
export const formatSecrets = (bundle: SecretsBundle): string => toYaml(bundle)

/** The secrets in a control plane's configuration. Throws ConfigError when some are missing. */
export function secretsOf(config: ConfigContainer): SecretsBundle {
  const missing: string[] = []
  const need = (path: string, value: string | undefined): string => {
    if (!value) missing.push(path)
    return value ?? ''
  }
  const machine = config.v1alpha1?.machine
  const cluster = config.v1alpha1?.cluster
  const both = (path: string, from: { crt?: string | undefined; key?: string | undefined } | undefined) => ({
    crt: need(`${path}.crt`, from?.crt),
    key: need(`${path}.key`, from?.key),
  })
  const bundle: SecretsBundle = {
    cluster: { id: need('cluster.id', cluster?.id), secret: need('cluster.secret', cluster?.secret) },
    secrets: {
      bootstraptoken: need('cluster.token', cluster?.token),
      ...(cluster?.secretboxEncryptionSecret && { secretboxencryptionsecret: cluster.secretboxEncryptionSecret }),
      ...(cluster?.aescbcEncryptionSecret && { aescbcencryptionsecret: cluster.aescbcEncryptionSecret }),
    },
    trustdinfo: { token: need('machine.token', machine?.token) },
    certs: {
      etcd: both('cluster.etcd.ca', cluster?.etcd?.ca),
      k8s: both('cluster.ca', cluster?.ca),
      k8saggregator: both('cluster.aggregatorCA', cluster?.aggregatorCA),
      k8sserviceaccount: { key: need('cluster.serviceAccount.key', cluster?.serviceAccount?.key) },
      os: both('machine.ca', machine?.ca),
    },
  }
  if (missing.length) {
    throw new ConfigError(missing.map((path) => ({ path, message: 'not in this configuration: use the one of a control plane' })))
  }
  return bundle
}

/** A pair of the bundle as PEM. */
export const pemOf = ({ crt, key }: { crt: string; key: string }): PemPair => ({ crt: fromBase64(crt), key: fromBase64(key) })
