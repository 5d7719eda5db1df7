import { expect, test } from 'bun:test'
import { parse } from 'yaml'
import type { ConfigContainer } from '../../../../src/os/config/container.ts'
import { generate } from '../../../../src/os/config/generate/generate.ts'
import { newSecrets } from '../../../../src/os/config/generate/secrets.ts'
import { MachineConfig } from '../../../../src/os/config/resources/machine-config.ts'
import { controllerManagerArguments } from '../../../../src/os/k8s/control-plane/arguments.ts'
import { configControllerManager } from '../../../../src/os/k8s/controllers/control-plane/controller-manager-config.ts'
import { renderSecrets } from '../../../../src/os/k8s/controllers/control-plane/render-secrets.ts'
import { ControllerManagerConfig } from '../../../../src/os/k8s/resources/controller-manager-config.ts'
import { SecretStatus } from '../../../../src/os/k8s/resources/secret-status.ts'
import { configKubernetesKeys, configRootEtcd, configRootKubernetes } from '../../../../src/os/secrets/controllers/roots.ts'
import { EtcdSecret } from '../../../../src/os/secrets/resources/etcd-secret.ts'
import { KubernetesDynamicCert } from '../../../../src/os/secrets/resources/kubernetes-dynamic-cert.ts'
import { KubernetesSecret } from '../../../../src/os/secrets/resources/kubernetes-secret.ts'
import { newCA, parseCertificates, toBase64 } from '../../../../src/pki/certificate.ts'
import { newKey } from '../../../../src/pki/key.ts'
import { machineWith, memoryFiles } from '../machine.ts'

const secrets = await newSecrets({ serviceAccount: newKey('ecdsa') })
const config = generate('controlplane', { clusterName: 'test', endpoint: 'https://10.0.0.1:6443', secrets })

/** A control plane with everything that is written to disk. */
async function machine(text: string) {
  const files = memoryFiles()
  const controllers = [configRootKubernetes, configRootEtcd, configKubernetesKeys, configControllerManager, renderSecrets({ files })]
  const { store, settled } = machineWith(controllers, text)
  const pair = { crt: secrets.certs.k8s.crt, key: secrets.certs.k8s.key }
  store.put(KubernetesSecret, 'k8s-certs', {
    schedulerKubeconfig: 's',
    controllerManagerKubeconfig: 'm',
    localhostAdminKubeconfig: 'l',
    adminKubeconfig: 'a',
  })
  store.put(KubernetesDynamicCert, 'k8s-dynamic-certs', { apiServer: pair, apiServerKubeletClient: pair, frontProxy: pair })
  store.put(EtcdSecret, 'etcd', { etcd: pair, etcdPeer: pair, etcdAdmin: pair, etcdAPIServer: pair })
  await settled()
  return {
    fileOf: (path: string) => files.contents.get(path) ?? '',
    version: () => Number(store.get(SecretStatus, 'static-pods')?.spec.version),
    manager: () => controllerManagerArguments(store.get(ControllerManagerConfig, 'kube-controller-manager')!.spec),
    async change(next: ConfigContainer) {
      store.put(MachineConfig, 'v1alpha1', next.text)
      await settled()
    },
  }
}

test('while an authority is replaced, the controller manager signs with a file of one certificate, and pods trust both', async () => {
  const accepted = { crt: toBase64(newCA({ subject: { organizations: ['kubernetes'] }, kind: 'ecdsa' }).crt) }
  const { fileOf, manager } = await machine(config.patch(JSON.stringify({ cluster: { acceptedCAs: [accepted] } })).text)
  const countIn = (flag: string) => {
    const [argument = ''] = manager().filter((one) => one.startsWith(`--${flag}=`))
    return parseCertificates(fileOf(argument.slice(flag.length + 3))).length
  }
  expect([countIn('cluster-signing-cert-file'), countIn('root-ca-file')]).toEqual([1, 2])
})

test('keys that are accepted besides are written for the API server, and taken away, each with another version', async () => {
  const { fileOf, version, change } = await machine(config.text)
  const folder = '/system/secrets/kubernetes/kube-apiserver'
  const publicKeys = () => fileOf(`${folder}/service-account.pub`).split('BEGIN PUBLIC KEY').length - 1
  const secretbox = () => parse(fileOf(`${folder}/encryptionconfig.yaml`)).resources[0].providers[0].secretbox.keys as { secret: string }[]
  const own = secrets.secrets.secretboxencryptionsecret
  const before = version()
  expect([publicKeys(), secretbox().map(({ secret }) => secret)]).toEqual([1, [own!, own!]])
  const next = Buffer.alloc(32, 7).toString('base64')
  const keys = { acceptedServiceAccountKeys: [toBase64(newKey('ecdsa').publicPem)], secretboxKeys: [next, own] }
  await change(config.patch(JSON.stringify({ apiVersion: 'v1alpha1', kind: 'KubernetesKeysConfig', ...keys })))
  const between = version()
  expect([publicKeys(), secretbox().map(({ secret }) => secret)]).toEqual([2, [next, own!, own!]])
  await change(config)
  expect([publicKeys(), secretbox().length]).toEqual([1, 2])
  // A version that comes back would leave the API server with its old files.
  expect(between).toBeGreaterThan(before)
  expect(version()).toBeGreaterThan(between)
})
