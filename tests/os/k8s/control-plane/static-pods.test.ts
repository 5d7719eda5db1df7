import { expect, test } from 'bun:test'
import { parse } from 'yaml'
import { buildKubeconfig, formatKubeconfig } from '../../../../src/kube/kubeconfig.ts'
import type { KubeObject } from '../../../../src/kube/object.ts'
import { apiServerArguments } from '../../../../src/os/k8s/control-plane/arguments.ts'
import { apiServerPod, controllerManagerPod, schedulerPod } from '../../../../src/os/k8s/control-plane/static-pods.ts'
import { configAdmissionControl } from '../../../../src/os/k8s/controllers/control-plane/admission-control-config.ts'
import { configApiServer } from '../../../../src/os/k8s/controllers/control-plane/api-server-config.ts'
import { configAuditPolicy } from '../../../../src/os/k8s/controllers/control-plane/audit-policy-config.ts'
import { configAuthorization } from '../../../../src/os/k8s/controllers/control-plane/authorization-config.ts'
import { renderControlPlanePods } from '../../../../src/os/k8s/controllers/control-plane/control-plane-pods.ts'
import { configControllerManager } from '../../../../src/os/k8s/controllers/control-plane/controller-manager-config.ts'
import { renderConfigs } from '../../../../src/os/k8s/controllers/control-plane/render-configs.ts'
import { configScheduler } from '../../../../src/os/k8s/controllers/control-plane/scheduler-config.ts'
import { configStaticPods } from '../../../../src/os/k8s/controllers/kubelet/configured-static-pods.ts'
import { APIServerConfig } from '../../../../src/os/k8s/resources/api-server-config.ts'
import { ConfigStatus } from '../../../../src/os/k8s/resources/config-status.ts'
import { ControllerManagerConfig } from '../../../../src/os/k8s/resources/controller-manager-config.ts'
import { Nodename } from '../../../../src/os/k8s/resources/nodename.ts'
import { SchedulerConfig } from '../../../../src/os/k8s/resources/scheduler-config.ts'
import { SecretStatus } from '../../../../src/os/k8s/resources/secret-status.ts'
import { StaticPod } from '../../../../src/os/k8s/resources/static-pod.ts'
import { Service } from '../../../../src/os/runtime/resources/service.ts'
import { KubernetesSecret } from '../../../../src/os/secrets/resources/kubernetes-secret.ts'
import { controlPlane, machineWith, memoryFiles, worker } from '../machine.ts'

const configs = [configApiServer, configControllerManager, configScheduler]

async function configured(cluster = '') {
  const { store, settled } = machineWith(configs, controlPlane('', cluster))
  await settled()
  return {
    api: store.get(APIServerConfig, 'kube-apiserver')!.spec,
    manager: store.get(ControllerManagerConfig, 'kube-controller-manager')!.spec,
    scheduler: store.get(SchedulerConfig, 'kube-scheduler')!.spec,
  }
}

const versions = { secrets: '3', config: '1' }
const containerOf = (pod: KubeObject) => (pod.spec as { containers: Record<string, any>[] }).containers[0]!

test('a worker has no control plane', async () => {
  const { store, settled } = machineWith(configs, worker())
  await settled()
  expect(store.get(APIServerConfig, 'kube-apiserver')).toBeUndefined()
})

test('the API server is run as the tables say', async () => {
  const { api } = await configured()
  const args = apiServerArguments(api)
  for (const flag of [
    '--advertise-address=$(POD_IP)',
    '--anonymous-auth=false',
    '--api-audiences=https://10.5.0.1:6443',
    '--authorization-config=/system/config/kubernetes/kube-apiserver/authorization-config.yaml',
    '--enable-admission-plugins=NodeRestriction',
    '--etcd-servers=https://localhost:2379',
    '--secure-port=6443',
    '--service-account-extend-token-expiration=false',
    '--service-account-issuer=https://10.5.0.1:6443',
    '--service-cluster-ip-range=10.96.0.0/12',
    '--tls-min-version=VersionTLS12',
  ])
    expect(args).toContain(flag)
  expect(args.some((flag) => flag.startsWith('--authorization-mode'))).toBe(false)
  expect(args).toHaveLength(41)
})

test('kubelets are verified where they request their certificates from the cluster, and only there', async () => {
  const flag = '--kubelet-certificate-authority=/system/secrets/kubernetes/kube-apiserver/ca.crt'
  const argumentsWith = async (kubelet: string, apiServer = '') => {
    const { store, settled } = machineWith(configs, controlPlane(`kubelet: ${kubelet}`, apiServer))
    await settled()
    return apiServerArguments(store.get(APIServerConfig, 'kube-apiserver')!.spec).filter((one) =>
      one.startsWith('--kubelet-certificate-authority'),
    )
  }
  expect(await argumentsWith('{}')).toEqual([])
  expect(await argumentsWith("{extraArgs: {rotate-server-certificates: 'true'}}")).toEqual([flag])
  expect(await argumentsWith('{extraConfig: {serverTLSBootstrap: true}}')).toEqual([flag])
  expect(await argumentsWith("{extraArgs: {rotate-server-certificates: 'false'}, extraConfig: {serverTLSBootstrap: true}}")).toEqual([])
  const without = "apiServer: {extraArgs: {kubelet-certificate-authority: ''}}"
  expect(await argumentsWith("{extraArgs: {rotate-server-certificates: 'true'}}", without)).toEqual(['--kubelet-certificate-authority='])
})

test('the scheduler serves no profiles: beside a configuration file its flag does not count', async () => {
  const rendered = async (cluster = '') => {
    const files = memoryFiles()
    const controllers = [configScheduler, configAdmissionControl, configAuditPolicy, configAuthorization, renderConfigs({ files })]
    const { settled } = machineWith(controllers, controlPlane('', cluster))
    await settled()
    return parse(files.contents.get('/system/config/kubernetes/kube-scheduler/scheduler-config.yaml') ?? '')
  }
  expect(await rendered()).toMatchObject({ kind: 'KubeSchedulerConfiguration', enableProfiling: false })
  expect(await rendered('scheduler: {config: {enableProfiling: true}}')).toMatchObject({ enableProfiling: true })
})

test('authorization by flags takes the place of the configuration file', async () => {
  const { api } = await configured('apiServer:\n  extraArgs:\n    authorization-mode: Webhook')
  const args = apiServerArguments(api)
  expect(args).toContain('--authorization-mode=Node,RBAC,Webhook')
  expect(args.some((flag) => flag.startsWith('--authorization-config'))).toBe(false)
})

test("the API server's pod", async () => {
  const { api } = await configured(`apiServer:
  env: {GREETING: 'cost $5'}
  resources: {limits: {memory: 1Gi}}
  extraVolumes: [{hostPath: /var/lib/x, mountPath: /var/lib/x, readonly: true}]`)
  const pod = apiServerPod(api, { ...versions, configFiles: '4' })
  expect(pod.metadata).toEqual({
    name: 'kube-apiserver',
    namespace: 'kube-system',
    annotations: { 'talos.dev/secrets-version': '3', 'talos.dev/config-version': '1', 'talos.dev/config-file-version': '4' },
    labels: {
      tier: 'control-plane',
      'k8s-app': 'kube-apiserver',
      component: 'kube-apiserver',
      'app.kubernetes.io/name': 'kube-apiserver',
      'app.kubernetes.io/version': 'v1.36.3',
      'app.kubernetes.io/component': 'control-plane',
      'app.kubernetes.io/managed-by': 'Talos',
    },
  })
  expect(pod.spec).toMatchObject({ hostNetwork: true, priorityClassName: 'system-cluster-critical', securityContext: { runAsUser: 65534 } })
  const container = containerOf(pod)
  expect(container.env).toEqual([
    { name: 'GREETING', value: 'cost $$5' },
    { name: 'POD_IP', valueFrom: { fieldRef: { fieldPath: 'status.podIP' } } },
    { name: 'GOMEMLIMIT', value: '1020054732' },
  ])
  expect(container.resources).toEqual({ requests: { cpu: '200m', memory: '512Mi' }, limits: { memory: '1Gi' } })
  expect(container.volumeMounts).toEqual([
    { name: 'secrets', mountPath: '/system/secrets/kubernetes/kube-apiserver', readOnly: true },
    { name: 'config', mountPath: '/system/config/kubernetes/kube-apiserver', readOnly: true },
    { name: 'audit', mountPath: '/var/log/audit/kube' },
    { name: 'var-lib-x', mountPath: '/var/lib/x', readOnly: true },
  ])
  expect(container.securityContext.capabilities).toEqual({ drop: ['ALL'], add: ['NET_BIND_SERVICE'] })
  expect(container.livenessProbe).toBeUndefined()
})

test('the probes of the other two', async () => {
  const { manager, scheduler } = await configured()
  const healthz = { httpGet: { path: '/healthz', host: 'localhost', port: 10257, scheme: 'HTTPS' } }
  expect(containerOf(controllerManagerPod(manager, versions))).toMatchObject({
    startupProbe: { ...healthz, periodSeconds: 1, failureThreshold: 60 },
    livenessProbe: { ...healthz, timeoutSeconds: 15 },
    resources: { requests: { cpu: '50m', memory: '256Mi' } },
  })
  expect(containerOf(controllerManagerPod(manager, versions)).command).toContain('--use-service-account-credentials')
  expect(containerOf(schedulerPod(scheduler, versions)).readinessProbe.httpGet.path).toBe('/readyz')
  const older = { ...scheduler, image: 'registry.k8s.io/kube-scheduler:v1.30.2' }
  expect(containerOf(schedulerPod(older, versions)).readinessProbe.httpGet.path).toBe('/healthz')
})

test('pods appear when files and etcd are ready, the others when the API answers, and stay when etcd is away', async () => {
  const api = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => Response.json({}) })
  const { store, settled } = machineWith([...configs, renderControlPlanePods()], controlPlane())
  const ids = () => store.list(StaticPod).map(({ metadata }) => metadata.id)
  store.put(SecretStatus, 'static-pods', { ready: true, version: '1' })
  store.put(ConfigStatus, 'static-pods', { ready: true, version: '1' })
  store.put(Nodename, 'nodename', { nodename: 'n1', hostnameVersion: '1', skipNodeRegistration: false })
  await settled()
  expect(ids()).toEqual([])
  store.put(Service, 'etcd', { running: true, healthy: true, unknown: false })
  await settled()
  expect(ids()).toEqual(['kube-apiserver'])
  const kubeconfig = formatKubeconfig(
    buildKubeconfig({ cluster: 'c', user: 'u', context: 'x', server: `http://127.0.0.1:${api.port}`, ca: 'CA' }),
  )
  store.put(KubernetesSecret, 'k8s-certs', {
    schedulerKubeconfig: '',
    controllerManagerKubeconfig: '',
    localhostAdminKubeconfig: kubeconfig,
    adminKubeconfig: '',
  })
  await store.until(StaticPod, 'kube-scheduler')
  const all = ['kube-apiserver', 'kube-controller-manager', 'kube-scheduler']
  expect(ids()).toEqual(all)
  const uid = (id: string) => (store.get(StaticPod, id)!.spec as { metadata: { uid: string } }).metadata.uid
  const before = uid('kube-apiserver')
  store.put(Service, 'etcd', { running: true, healthy: false, unknown: false })
  await settled()
  expect(ids()).toEqual(all)
  store.put(Service, 'etcd', { running: true, healthy: true, unknown: false })
  store.put(SecretStatus, 'static-pods', { ready: true, version: '2' })
  await settled()
  expect(uid('kube-apiserver')).not.toBe(before)
  await api.stop(true)
})

test('pods of the configuration', async () => {
  const { store, settled } = machineWith(
    [configStaticPods],
    worker(`pods:
  - {apiVersion: v1, kind: Pod, metadata: {name: web}}
  - {apiVersion: v1, kind: Pod, metadata: {}}`),
  )
  await settled()
  expect(store.list(StaticPod).map(({ metadata }) => metadata.id)).toEqual(['default-web'])
})
