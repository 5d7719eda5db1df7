import { expect, test } from 'bun:test'
import { parse } from 'yaml'
import { SwapStatus } from '../../../../src/os/block/resources/swap-status.ts'
import { certificateBundle, EtcFileStatus } from '../../../../src/os/files/resources/etc-file.ts'
import { configKubelet } from '../../../../src/os/k8s/controllers/kubelet/kubelet-config.ts'
import { startKubelet } from '../../../../src/os/k8s/controllers/kubelet/kubelet-service.ts'
import { specKubelet } from '../../../../src/os/k8s/controllers/kubelet/kubelet-spec.ts'
import { chooseNodeIP } from '../../../../src/os/k8s/controllers/node/node-ip.ts'
import { configNodeIP } from '../../../../src/os/k8s/controllers/node/node-ip-config.ts'
import { configNodeTaints } from '../../../../src/os/k8s/controllers/node/node-specs.ts'
import { asNodename, configNodename } from '../../../../src/os/k8s/controllers/node/nodename.ts'
import { hasClientCertificate, kubeletAccess, writeKubeletFiles } from '../../../../src/os/k8s/kubelet/files.ts'
import { KubeletSpec } from '../../../../src/os/k8s/resources/kubelet.ts'
import { NodeIP } from '../../../../src/os/k8s/resources/node-ip.ts'
import { StaticPodServerStatus } from '../../../../src/os/k8s/resources/static-pod.ts'
import { HostnameStatus } from '../../../../src/os/network/resources/hostname.ts'
import { NodeAddress } from '../../../../src/os/network/resources/node-address.ts'
import { Environment } from '../../../../src/os/runtime/resources/environment.ts'
import { KubeletSecret } from '../../../../src/os/secrets/resources/kubelet-secret.ts'
import { KubernetesRootSecret } from '../../../../src/os/secrets/resources/kubernetes-root-secret.ts'
import { splitUrl } from '../../../../src/os/url.ts'
import { newCA, newCertificate, type PemPair, signedBy } from '../../../../src/pki/certificate.ts'
import { controlPlane, machineWith, memoryFiles, worker } from '../machine.ts'

const configuration = [configNodeTaints, configNodename, configNodeIP, chooseNodeIP, configKubelet]

async function kubeletOf(config: string, addresses = ['10.5.0.2/24', '192.168.7.2/24'], more: Parameters<typeof machineWith>[0] = []) {
  const os = machineWith([...configuration, specKubelet({ mode: 'container' }), ...more], config)
  os.store.put(HostnameStatus, 'hostname', { hostname: 'Node_1', domainname: 'example.org' })
  os.store.put(NodeAddress, 'routed-no-k8s', { addresses, sortAlgorithm: 'v1' })
  os.store.put(StaticPodServerStatus, 'static-pod-server-status', { url: 'http://127.0.0.1:999' })
  await os.settled()
  return { ...os, spec: os.store.get(KubeletSpec, 'kubelet')?.spec }
}

test('the command line', async () => {
  const { spec } = await kubeletOf(worker())
  expect(spec?.args).toEqual([
    '--bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubeconfig',
    '--cert-dir=/var/lib/kubelet/pki',
    '--config=/etc/kubernetes/kubelet.yaml',
    '--hostname-override=node-1',
    '--kubeconfig=/etc/kubernetes/kubeconfig-kubelet',
    '--node-ip=10.5.0.2',
  ])
  expect(spec?.expectedNodename).toBe('node-1')
})

test('the configuration file, in a container and on a machine', async () => {
  const { spec, store, runtime } = await kubeletOf(controlPlane())
  expect(spec?.config).toMatchObject({
    staticPodURL: 'http://127.0.0.1:999',
    clusterDNS: ['10.96.0.10'],
    failCgroupV1: false,
    podPidsLimit: 8192,
    protectKernelDefaults: false,
    registerWithTaints: [{ key: 'node-role.kubernetes.io/control-plane', effect: 'NoSchedule' }],
    systemReserved: { cpu: '50m', pid: '100', 'ephemeral-storage': '256Mi', memory: '512Mi' },
    resolvConf: '/system/resolved/resolv.conf',
  })
  runtime.stop()
  expect(store.get(NodeIP, 'kubelet')?.spec).toEqual({ addresses: ['10.5.0.2'] })
})

test("subnets choose the node's address", async () => {
  const { spec } = await kubeletOf(worker('kubelet:\n  nodeIP:\n    validSubnets: [192.168.0.0/16]'))
  expect(spec?.args).toContain('--node-ip=192.168.7.2')
  const none = await kubeletOf(worker('kubelet:\n  nodeIP:\n    validSubnets: [172.16.0.0/12]'))
  expect(none.spec).toBeUndefined()
  const podNetwork = await kubeletOf(worker(), ['10.244.0.1/24', '10.5.0.2/24'])
  expect(podNetwork.spec?.args).toContain('--node-ip=10.5.0.2')
})

test('a worker registers with its taints, which it may not change later', async () => {
  const { spec } = await kubeletOf(worker('nodeTaints: {gpu: "yes:NoSchedule"}'))
  expect(spec?.config).toMatchObject({ registerWithTaints: [{ key: 'gpu', value: 'yes', effect: 'NoSchedule' }] })
})

test("the operator's configuration is merged in, what the system depends on is refused", async () => {
  const { spec } = await kubeletOf(
    worker(`kubelet:
  registerWithFQDN: true
  extraArgs: {rotate-server-certificates: 'true'}
  extraConfig: {maxPods: 42, systemReserved: {cpu: 100m}}`),
  )
  expect(spec?.config).toMatchObject({ maxPods: 42, systemReserved: { cpu: '100m', memory: '384Mi' } })
  expect(spec?.args).toContain('--rotate-server-certificates=true')
  expect(spec?.args).toContain('--hostname-override=node-1.example.org')
  expect((await kubeletOf(worker('kubelet:\n  extraConfig: {resolvConf: /x}'))).spec).toBeUndefined()
})

test('a node that is not to register has no way to the API server', async () => {
  const { spec } = await kubeletOf(worker('kubelet: {skipNodeRegistration: true}'))
  expect(spec?.args?.filter((argument) => argument.includes('kubeconfig'))).toEqual([])
  expect(spec?.config).toMatchObject({ authentication: { anonymous: { enabled: false } }, authorization: { mode: 'AlwaysAllow' } })
})

test('a full name is registered only where there is a domain', async () => {
  const { store, spec, settled } = await kubeletOf(worker('kubelet: {registerWithFQDN: true}'))
  expect(spec?.expectedNodename).toBe('node-1.example.org')
  store.put(HostnameStatus, 'hostname', { hostname: 'Node_1', domainname: '' })
  await settled()
  expect(store.get(KubeletSpec, 'kubelet')?.spec.expectedNodename).toBe('node-1')
})

test('programs that give credentials have a configuration that only root reads, for as long as it is set', async () => {
  const files = memoryFiles()
  const credentialProviderConfig = { providers: [{ name: 'ecr' }] }
  const { spec } = await kubeletOf(
    worker('kubelet: {credentialProviderConfig: {providers: [{name: ecr}]}, extraArgs: {image-credential-provider-config: /x}}'),
  )
  expect(spec).toBeUndefined()
  const own = (await kubeletOf(worker('kubelet: {credentialProviderConfig: {providers: [{name: ecr}]}}'))).spec
  expect(own?.args).toContain('--image-credential-provider-bin-dir=/usr/local/lib/kubelet/credentialproviders')
  const file = '/etc/kubernetes/kubelet-credentialproviderconfig.yaml'
  expect(own?.args).toContain(`--image-credential-provider-config=${file}`)
  const access = { server: 'https://10.0.0.1:6443', ca: 'ca', token: 'token' }
  const started = { image: '', config: {}, ...(own?.args && { args: own.args }) }
  await writeKubeletFiles(files, { ...started, credentialProviderConfig }, access)
  expect(parse(files.contents.get(file) ?? '')).toEqual({
    ...{ apiVersion: 'kubelet.config.k8s.io/v1', kind: 'CredentialProviderConfig' },
    ...credentialProviderConfig,
  })
  expect(files.owners.get(file)?.mode).toBe(0o600)
  await writeKubeletFiles(files, started, access)
  expect(files.contents.has(file)).toBe(false)
})

test('strings are quoted in the configuration file, also those that look like something else', async () => {
  const files = memoryFiles()
  const registerWithTaints = ['yes', 'off', '1:30', '0o17', 'plain'].map((value) => ({ key: 'k', value, effect: 'NoSchedule' }))
  await writeKubeletFiles(files, { image: '', config: { registerWithTaints } }, { server: 'https://10.0.0.1:6443', ca: 'ca', token: 't' })
  const written = files.contents.get('/etc/kubernetes/kubelet.yaml') ?? ''
  expect(written.match(/value: .*/g)).toEqual(['value: "yes"', 'value: "off"', 'value: "1:30"', 'value: "0o17"', 'value: "plain"'])
  expect(written).not.toContain('%YAML')
})

test('names become what Kubernetes lets a node be called', () => {
  expect(asNodename('Foo_Bar.x-')).toBe('foo-bar.x')
})

const base64 = (text: string) => Buffer.from(text).toString('base64')
const kubernetesCA = () => newCA({ subject: { organizations: ['kubernetes'] }, kind: 'ecdsa' })

/** A control plane whose kubelet is started by the real controller, on files in memory. */
async function kubeletStarted(machine = '', ca = kubernetesCA()) {
  const files = memoryFiles()
  const done: string[] = []
  const supervisor = {
    get: () => undefined,
    subscribe: () => () => {},
    load: () => done.push('load'),
    start: (id: string) => done.push(`start ${id}`),
    restart: async (id: string) => void done.push(`restart ${id}`),
  }
  const os = await kubeletOf(controlPlane(machine))
  os.store.put(EtcFileStatus, certificateBundle, { specVersion: '1' })
  os.runtime.register(startKubelet({ store: os.store, supervisor, service: () => ({}), kernel: { files } } as never, async () => {}))
  const trust = async (issuing: PemPair, ...accepted: PemPair[]) => {
    os.store.put(KubernetesRootSecret, 'k8s', {
      name: 'c1',
      certSANs: [],
      apiServerIPs: [],
      dnsDomain: 'cluster.local',
      issuingCA: { crt: base64(issuing.crt), key: base64(issuing.key) },
      aesCBCEncryptionSecret: '',
      secretboxEncryptionSecret: '',
      bootstrapTokenID: 'abcdef',
      bootstrapTokenSecret: '0123456789abcdef',
    })
    os.store.put(KubeletSecret, 'kubelet', {
      endpoint: splitUrl('https://127.0.0.1:7445'),
      acceptedCAs: [issuing, ...accepted].map(({ crt }) => ({ crt: base64(crt) })),
      bootstrapTokenID: 'abcdef',
      bootstrapTokenSecret: '0123456789abcdef',
    })
    await os.settled()
  }
  await trust(ca)
  return { ...os, files, done, ca, trust }
}

const clientFile = '/var/lib/kubelet/pki/kubelet-client-current.pem'
const servingFile = '/var/lib/kubelet/pki/kubelet-server-current.pem'
const kubeconfigFile = '/etc/kubernetes/kubeconfig-kubelet'

test('the kubelet restarts with other trusted authorities or variables', async () => {
  const { done, store, settled } = await kubeletStarted()
  store.put(EtcFileStatus, certificateBundle, { specVersion: '2' })
  await settled()
  expect(done).toEqual(['load', 'start kubelet', 'restart kubelet'])
  store.put(Environment, 'machined', { variables: ['HTTPS_PROXY=http://10.0.0.9:3128'] })
  await settled()
  expect(done).toEqual(['load', 'start kubelet', 'restart kubelet', 'restart kubelet'])
})

const swapArea = { device: '/dev/vdb1', type: 'partition', size: 2 ** 30, sizeHuman: '1 GiB', used: 0, usedHuman: '0 B', priority: -2 }

test('the kubelet restarts for a swap area that pods may use, and not for its usage', async () => {
  const { done, store, settled } = await kubeletStarted(`kubelet: {extraConfig: {memorySwap: {swapBehavior: LimitedSwap}}}`)
  store.put(SwapStatus, '/dev/vdb1', swapArea)
  await settled()
  store.put(SwapStatus, '/dev/vdb1', { ...swapArea, used: 4096, usedHuman: '4 KiB' })
  await settled()
  expect(done).toEqual(['load', 'start kubelet', 'restart kubelet'])
})

test('swap areas do not concern a kubelet whose pods may not swap', async () => {
  const { done, store, settled } = await kubeletStarted()
  store.put(SwapStatus, '/dev/vdb1', swapArea)
  await settled()
  expect(done).toEqual(['load', 'start kubelet'])
})

test("a control plane's kubelet has a certificate from the start; a changed name makes it a new one", async () => {
  const { files, done, ca, store, settled } = await kubeletStarted()
  const good = (nodename: string) => hasClientCertificate(files, { nodename, authorities: ca.crt, now: new Date() })
  expect(done).toEqual(['load', 'start kubelet'])
  expect(await good('node-1')).toBe(true)
  expect(parse(files.contents.get('/etc/kubernetes/kubelet.yaml')!).kind).toBe('KubeletConfiguration')
  const bootstrap = parse(files.contents.get('/etc/kubernetes/bootstrap-kubeconfig')!)
  expect(bootstrap['current-context']).toBe('kubelet@local')
  expect(bootstrap.users[0].user).toEqual({ token: 'abcdef.0123456789abcdef' })
  expect(files.owners.get('/etc/kubernetes/bootstrap-kubeconfig')?.mode).toBe(0o600)

  // What the kubelet writes for itself is the node's way to the API, and follows the authority and the server.
  files.contents.set(kubeconfigFile, files.contents.get('/etc/kubernetes/bootstrap-kubeconfig')!)
  expect(kubeletAccess(files)).toMatchObject({ server: 'https://127.0.0.1:7445', ca: ca.crt })

  store.put(HostnameStatus, 'hostname', { hostname: 'other', domainname: '' })
  await settled()
  expect(done).toEqual(['load', 'start kubelet', 'restart kubelet'])
  expect(await good('other')).toBe(true)
})

test('a certificate is kept while its authority is accepted, and replaced with kubeconfig and restart once it no longer is', async () => {
  const { files, done, ca: old, trust } = await kubeletStarted()
  const next = kubernetesCA()
  const before = files.contents.get(clientFile)!
  files.contents.set(kubeconfigFile, files.contents.get('/etc/kubernetes/bootstrap-kubeconfig')!)
  files.contents.set(servingFile, before)
  await trust(old, next)
  await trust(next, old)
  expect(files.contents.get(clientFile)).toBe(before)
  expect(files.contents.has(kubeconfigFile)).toBe(true)
  expect(files.contents.has(servingFile)).toBe(true)

  done.length = 0
  await trust(next)
  expect(signedBy(files.contents.get(clientFile)!, next.crt)).toBe(true)
  expect(files.contents.has(kubeconfigFile)).toBe(false)
  expect(files.contents.has(servingFile)).toBe(false)
  expect(done).toEqual(['restart kubelet'])
})

test('a serving certificate of a dropped authority goes also when the client certificate is already the new one', async () => {
  const { files, ca: old, trust } = await kubeletStarted()
  const next = kubernetesCA()
  const serving = files.contents.get(clientFile)!
  await trust(next)
  files.contents.set(servingFile, serving)
  expect(await hasClientCertificate(files, { nodename: 'node-1', authorities: next.crt + old.crt, now: new Date() })).toBe(true)
  expect(files.contents.has(servingFile)).toBe(true)
  expect(await hasClientCertificate(files, { nodename: 'node-1', authorities: next.crt, now: new Date() })).toBe(true)
  expect(files.contents.has(servingFile)).toBe(false)
})

test('a certificate that ran out while the node was away is replaced, and the kubelet reads the new one', async () => {
  const { files, done, ca, trust } = await kubeletStarted()
  const expired = newCertificate({
    ca,
    subject: { commonName: 'system:node:node-1', organizations: ['system:nodes'] },
    usage: ['clientAuth'],
    lifetime: 1000,
    now: new Date(0),
  })
  files.contents.set(clientFile, expired.crt + expired.key)
  done.length = 0
  await trust(ca, kubernetesCA())
  expect(files.contents.get(clientFile)).not.toContain(expired.crt)
  expect(done).toEqual(['restart kubelet'])
})
