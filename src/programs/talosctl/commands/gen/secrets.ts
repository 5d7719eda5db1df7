import { join } from 'node:path'
import { ConfigContainer } from '../../../../os/config/container.ts'
import { formatSecrets, newSecrets, type SecretsBundle, secretsOf } from '../../../../os/config/generate/secrets.ts'
import { matches, toBase64 } from '../../../../pki/certificate.ts'
import { parseKey } from '../../../../pki/key.ts'
import { UsageError } from '../../failure.ts'
import type { Io } from '../../io.ts'
import { checkVersion } from '../../machine-config/version-contract.ts'
import { refuseExisting, writeNew } from '../../new-files.ts'
import { readText } from '../../read-text.ts'
import type { GenFlags } from './gen.ts'

/** Where the secrets come from and go to. */
export interface SecretsOptions {
  outputFile: string
  fromControlplaneConfig?: string
  fromKubernetesPki?: string
  kubernetesBootstrapToken?: string
  talosVersion?: string
}

/** Makes a cluster's secrets, or takes them from where they are. */
export async function genSecrets(io: Io, flags: GenFlags, options: SecretsOptions): Promise<void> {
  checkVersion(options.talosVersion)
  if (options.fromControlplaneConfig && options.fromKubernetesPki) {
    throw new UsageError('--from-controlplane-config and --from-kubernetes-pki exclude each other')
  }
  if (options.outputFile !== '-') await refuseExisting([options.outputFile], flags.force)
  const content = formatSecrets(await secrets(io, options))
  if (options.outputFile === '-') io.stdout.write(content)
  else await writeNew([{ path: options.outputFile, content }], flags.force)
}

async function secrets(
  io: Io,
  { fromControlplaneConfig, fromKubernetesPki, kubernetesBootstrapToken: token }: SecretsOptions,
): Promise<SecretsBundle> {
  if (fromControlplaneConfig) return secretsOf(ConfigContainer.parse(await readText(fromControlplaneConfig, 'configuration')))
  if (token && !/^[a-z0-9]{6}\.[a-z0-9]{16}$/.test(token))
    throw new UsageError('a bootstrap token is six characters, a dot, sixteen characters')
  const withToken = (bundle: SecretsBundle) => {
    if (token) bundle.secrets.bootstraptoken = token
    return bundle
  }
  if (!fromKubernetesPki) return withToken(await newSecrets({ now: io.now() }))
  const pair = async (name: string) => {
    const read = async (suffix: string) => readText(join(fromKubernetesPki, `${name}.${suffix}`), 'Kubernetes PKI')
    const pem = { crt: await read('crt'), key: await read('key') }
    if (!matches(pem)) throw new UsageError(`"${name}.key" in "${fromKubernetesPki}" is not the key of "${name}.crt"`)
    return { crt: toBase64(pem.crt), key: toBase64(pem.key) }
  }
  const authorities = { k8s: await pair('ca'), k8saggregator: await pair('front-proxy-ca'), etcd: await pair('etcd/ca') }
  const account = await readText(join(fromKubernetesPki, 'sa.key'), 'Kubernetes PKI')
  const bundle = withToken(await newSecrets({ now: io.now(), serviceAccount: parseKey(account) }))
  return { ...bundle, certs: { ...bundle.certs, ...authorities, k8sserviceaccount: { key: toBase64(account) } } }
}
