/** The whole command against one machine and its API server, both in memory: the machine follows its configuration at once. */
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import * as v from 'valibot'
import { describe } from '../../../../../src/cosi/meta.ts'
import { defineResource } from '../../../../../src/cosi/resource.ts'
import { Store } from '../../../../../src/cosi/store.ts'
import type { KubeObject } from '../../../../../src/kube/object.ts'
import { kubernetesImages } from '../../../../../src/os/config/generate/versions.ts'
import { parseConfig } from '../../../../../src/os/config/parse.ts'
import { MachineConfig } from '../../../../../src/os/config/resources/machine-config.ts'
import { ComponentFallback } from '../../../../../src/os/k8s/resources/component.ts'
import { ExtraManifestsConfig } from '../../../../../src/os/k8s/resources/extra-manifests-config.ts'
import { StaticPod } from '../../../../../src/os/k8s/resources/static-pod.ts'
import {
  type ComponentName,
  componentNames,
  components,
  imageIn,
} from '../../../../../src/programs/talosctl/kubernetes-upgrade/components.ts'
import { serverStream, unary } from '../../../../../src/rpc/server/method.ts'
import { roleAccess } from '../../../../../src/rpc/server/resource-access.ts'
import { stateMethods } from '../../../../../src/rpc/server/state.ts'
import { RpcError } from '../../../../../src/rpc/status.ts'
import { kubernetesInMemory } from '../../kubernetes-upgrade/kubernetes.ts'
import { node, talosctl } from '../../peer.ts'
import { controlPlane, secrets } from '../../rotation/machines.ts'

const [before, after] = ['1.35.4', '1.36.3']
const old = kubernetesImages(before)
const configured = controlPlane.patch(
  JSON.stringify({
    machine: { kubelet: { image: old.kubelet } },
    cluster: {
      apiServer: { image: old.apiServer },
      controllerManager: { image: old.controllerManager },
      scheduler: { image: old.scheduler },
      proxy: { image: old.proxy },
    },
  }),
)

const resourceFor = (component: ComponentName) => {
  const { type, namespace } = components[component].resource
  return defineResource({ type, namespace, displayType: type, spec: v.record(v.string(), v.unknown()) })
}
const resources = new Map(componentNames.map((component) => [component, resourceFor(component)]))
const type = 'Manifests.kubernetes.talos.dev'
const Manifest = defineResource({ type, namespace: 'controlplane', displayType: 'Manifest', spec: v.array(v.unknown()) })
const staticPods = ['kube-apiserver', 'kube-controller-manager', 'kube-scheduler'] as const
const proxyPath = '/apis/apps/v1/namespaces/kube-system/daemonsets/kube-proxy'

const proxy = (image: string): KubeObject => ({
  apiVersion: 'apps/v1',
  kind: 'DaemonSet',
  metadata: { name: 'kube-proxy', namespace: 'kube-system' },
  spec: { template: { spec: { containers: [{ name: 'kube-proxy', image }] } } },
})

let home = ''
let api: ReturnType<typeof kubernetesInMemory>
let store: Store
const pulled: string[] = []
/** Images that the machine has. */
const present: string[] = []
/** Components and images that do not start. */
const broken = new Set<string>()
/** Images with which the machine goes back to the one before. */
const rejected = new Set<string>()
let kubeletStarts = 0
/** Called with each component whose image changes. */
let started: (component: ComponentName) => void

/** What a machine does with a configuration. */
function carryOut(text: string): void {
  store.put(MachineConfig, 'v1alpha1', text)
  const config = parseConfig(text)
  for (const [component, resource] of resources) {
    const image = imageIn(config, component) ?? ''
    const { id, key } = components[component].resource
    const changed = store.get(resource, id)?.spec[key] !== image
    if (changed && rejected.has(image)) {
      const fallback = { section: {}, rejected: 'x', changed: [`${component}.image`], error: 'exec format error', since: '' }
      store.put(ComponentFallback, component, fallback)
      continue
    }
    store.put(resource, id, { [key]: image })
    if (!changed) continue
    started(component)
    const ready = { conditions: [{ type: 'Ready', status: broken.has(component) ? 'False' : 'True' }] }
    if (component === 'kubelet') {
      kubeletStarts++
      const status = { ...ready, addresses: [{ type: 'InternalIP', address: node }], nodeInfo: { kubeletVersion: image.split(':')[1] } }
      const labels = { 'node-role.kubernetes.io/control-plane': '' }
      const spec = api.get('/api/v1/nodes/one')?.spec ?? {}
      const annotations = api.get('/api/v1/nodes/one')?.metadata.annotations ?? {}
      api.put({ apiVersion: 'v1', kind: 'Node', metadata: { name: 'one', labels, annotations }, spec, status })
    } else if (component === 'kube-proxy') store.put(Manifest, '10-kube-proxy', [proxy(image)])
    else
      api.put({
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: {
          name: `${component}-one`,
          namespace: 'kube-system',
          labels: { 'k8s-app': component },
          annotations: { 'kubernetes.io/config.mirror': '', 'talos.dev/config-version': String(store.get(resource, id)?.metadata.version) },
        },
        spec: { containers: [{ name: component, image }] },
        status: ready,
      })
  }
}

const kubelet = () => ({
  id: 'kubelet',
  state: 'Running',
  health: { healthy: true },
  events: { events: [{ state: 'Running', ts: { seconds: kubeletStarts, nanos: 0 } }] },
})

const kubeconfig = () => ({
  apiVersion: 'v1',
  kind: 'Config',
  clusters: [{ name: 'test', cluster: { server: api.url, 'certificate-authority-data': secrets.certs.k8s.crt } }],
  users: [{ name: 'admin', user: { token: 'abc' } }],
  contexts: [{ name: 'admin@test', context: { cluster: 'test', user: 'admin' } }],
  'current-context': 'admin@test',
})

const methods = [
  ...stateMethods(roleAccess),
  unary('machine.MachineService/Version', 'anyone', () => ({ messages: [{ version: { tag: 'v1.13.100' } }] })),
  unary('machine.MachineService/ServiceList', 'anyone', () => ({ messages: [{ services: [kubelet()] }] })),
  unary('ichor.v1.ConfigService/Apply', 'anyone', ({ data }) => {
    carryOut(Buffer.from(data).toString())
    return { messages: [{}] }
  }),
  serverStream('machine.MachineService/Kubeconfig', 'anyone', async function* () {
    yield { bytes: Buffer.from(JSON.stringify(kubeconfig())) }
  }),
  serverStream('machine.ImageService/List', 'anyone', async function* () {
    for (const name of present) yield { name }
  }),
  serverStream('machine.ImageService/Pull', 'anyone', async function* ({ imageRef }) {
    if (broken.has(imageRef)) throw new RpcError('NotFound', 'no such image')
    pulled.push(imageRef)
    yield { name: imageRef }
  }),
]

const upgrade = (...args: string[]) =>
  talosctl(methods, ['upgrade-k8s', '--to', after, '--step-timeout', '1s', '--manifests-reconcile-timeout', '0s', ...args], {
    store,
    env: { TALOS_HOME: home },
    // What does not become healthy is looked at until the time of a step is over.
    longestPause: 25,
  })

const images = () => componentNames.map((component) => imageIn(parseConfig(store.get(MachineConfig, 'v1alpha1')?.spec ?? ''), component))
const imagesOf = (version: string) => {
  const all = kubernetesImages(version)
  return [all.apiServer, all.controllerManager, all.scheduler, all.proxy, all.kubelet]
}

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'ichor-upgrade-'))
  api = kubernetesInMemory()
  store = new Store()
  pulled.length = 0
  present.length = 0
  broken.clear()
  rejected.clear()
  started = () => {}
  describe(store, [MachineConfig, Manifest, ExtraManifestsConfig, StaticPod, ComponentFallback, ...resources.values()], {
    meta: '',
    config: '',
    controlplane: '',
    k8s: '',
  })
  carryOut(configured.text)
  api.put(proxy(old.proxy))
})
afterEach(async () => {
  await api.close()
  rmSync(home, { recursive: true })
})

test('a dry run shows what would change, and neither pulls nor changes nor keeps anything', async () => {
  const text = store.get(MachineConfig, 'v1alpha1')?.spec
  const { code, stdout } = await upgrade('--dry-run')
  expect(code).toBe(0)
  for (const component of staticPods) {
    const key = `cluster.${components[component].section[1]}.image`
    expect(stdout).toContain(`${component} of one:\n- ${key}: registry.k8s.io/${component}:v${before}\n`)
  }
  expect(stdout).toContain(' < configured apps/v1.DaemonSet/kube-system/kube-proxy\n')
  expect(stdout).toContain(`+        - image: registry.k8s.io/kube-proxy:v${after}\n`)
  expect(stdout).toEndWith('nothing was changed: run it without --dry-run\n')
  expect([pulled, store.get(MachineConfig, 'v1alpha1')?.spec, existsSync(join(home, 'kubernetes-upgrades'))]).toEqual([[], text, false])
  expect(api.seen.filter((request) => !request.endsWith(' dry'))).toEqual([])
})

test('everything is upgraded in order, and then there is nothing to do', async () => {
  const { code, stderr } = await upgrade()
  expect([code, images()]).toEqual([0, imagesOf(after)])
  expect(stderr).toStartWith(`the lowest version of Kubernetes in the cluster is ${before}\ncontrol planes: one (${node})\n`)
  expect(pulled).toEqual(imagesOf(after).filter((image) => !image.includes('kube-proxy')))
  expect(stderr.match(/(kube\S+) of one \(\d\/5\): healthy/g)).toHaveLength(5)
  expect(JSON.stringify(api.get(proxyPath))).toContain(`kube-proxy:v${after}`)
  const again = await upgrade('--dry-run')
  expect(again.stdout).toEndWith(`no changes: the cluster is at ${after}\n`)
})

test('what does not become healthy stops the upgrade, which continues when it is repeated', async () => {
  broken.add('kube-scheduler')
  const { code, stderr } = await upgrade()
  expect(code).toBe(1)
  expect(stderr).toContain('kube-scheduler of one (3/5): ')
  expect(stderr).toContain('its pod is not ready')
  expect(stderr).toEndWith('run the same command again to continue, or "talosctl upgrade-k8s --rollback" to go back\n')
  expect(images()).toEqual([...imagesOf(after).slice(0, 3), ...imagesOf(before).slice(3)])
  broken.clear()
  const pod = api.get('/api/v1/namespaces/kube-system/pods/kube-scheduler-one')
  api.put({ ...pod!, status: { conditions: [{ type: 'Ready', status: 'True' }] } })
  const second = await upgrade()
  expect([second.code, images()]).toEqual([0, imagesOf(after)])
  expect(second.stderr).toContain('kube-apiserver of one (1/5): has it already, and is healthy')
})

test('it goes back to where it was, also after a second run, and then there is nothing to go back to', async () => {
  broken.add('kube-controller-manager')
  await upgrade()
  await upgrade()
  broken.clear()
  const preview = await upgrade('--rollback', '--dry-run')
  expect(preview.stdout).toContain(`kube-apiserver of one:\n- cluster.apiServer.image: registry.k8s.io/kube-apiserver:v${after}\n`)
  const { code, stderr } = await upgrade('--rollback')
  expect([code, images()]).toEqual([0, imagesOf(before)])
  expect(stderr).toContain(`Kubernetes is back at ${before}`)
  expect(readdirSync(join(home, 'kubernetes-upgrades'))).toEqual([])
  expect((await upgrade('--rollback')).stderr).toContain('there is no upgrade of this cluster to go back from')
})

test('a completed upgrade is rolled back too: nothing is newer than the API server at any moment', async () => {
  await upgrade()
  // Nothing is left to do, and the way back stays.
  expect((await upgrade()).code).toBe(0)
  const order: string[] = []
  started = (component) => order.push(component)
  api.state.reject = (method, path) => {
    if (method === 'PATCH' && path === proxyPath) order.push('manifest of kube-proxy')
    return undefined
  }
  expect((await upgrade('--rollback')).code).toBe(0)
  expect(images()).toEqual(imagesOf(before))
  expect(JSON.stringify(api.get(proxyPath))).toContain(`kube-proxy:v${before}`)
  expect([...new Set(order)]).toEqual([
    'kubelet',
    'kube-proxy',
    'manifest of kube-proxy',
    'kube-scheduler',
    'kube-controller-manager',
    'kube-apiserver',
  ])
})

test('an image that cannot be pulled is found before anything changes', async () => {
  broken.add(`registry.k8s.io/kube-scheduler:v${after}`)
  const { code, stderr } = await upgrade()
  expect([code, images()]).toEqual([1, imagesOf(before)])
  expect(stderr).toContain('no such image')
})

test('an image with which a machine goes back to the one before ends the upgrade at once', async () => {
  rejected.add(`registry.k8s.io/kube-scheduler:v${after}`)
  const { code, stderr } = await upgrade('--step-timeout', '10m')
  expect(code).toBe(1)
  expect(stderr).toContain(
    `kube-scheduler of one (3/5): the node went back to registry.k8s.io/kube-scheduler:v${before}: kube-scheduler.image did not start: exec format error`,
  )
})

test('a node is drained on request, and takes pods again, unless somebody else had cordoned it', async () => {
  const cordons = () => api.seen.filter((request) => request === 'PATCH /api/v1/nodes/one').length
  expect((await upgrade('--drain')).code).toBe(0)
  expect([cordons(), api.get('/api/v1/nodes/one')?.spec]).toEqual([2, {}])
  await upgrade('--rollback')
  const one = api.get('/api/v1/nodes/one')
  api.put({ ...one!, spec: { unschedulable: true } })
  expect((await upgrade('--drain')).code).toBe(0)
  expect([cordons(), api.get('/api/v1/nodes/one')?.spec]).toEqual([2, { unschedulable: true }])
})

test('an image that the machine has is not pulled, and none with --pre-pull-images=false', async () => {
  present.push(`ghcr.io/siderolabs/kubelet:v${after}`)
  const { stderr } = await upgrade()
  expect(pulled).toEqual(staticPods.map((component) => `registry.k8s.io/${component}:v${after}`))
  expect(stderr).toContain(`one: image ghcr.io/siderolabs/kubelet:v${after} (4/4): there already\n`)
  await upgrade('--rollback')
  pulled.length = 0
  expect((await upgrade('--pre-pull-images=false')).code).toBe(0)
  expect(pulled).toEqual([])
})

test.each([
  [['--to', '1.37.0', '--from', '1.36.0'], 'one: release v1.13.100 runs Kubernetes 1.31 to 1.36, not 1.37.0: upgrade the system first'],
  [['--from', '1.34.0'], 'an upgrade from 1.34.0 to 1.36.3 is not possible'],
  [['--to', 'latest'], '--to "latest": must be a version such as 1.36.3'],
  [['-n', '10.0.0.1,10.0.0.2'], 'command "upgrade-k8s" is not supported with multiple nodes'],
  [['--with-docs=false'], 'comments of configurations stay as they are'],
])('%j is refused', async (flags, message) => {
  const { code, stderr } = await upgrade(...flags)
  expect(code).toBe(1)
  expect(stderr).toContain(message)
  expect(images()).toEqual(imagesOf(before))
})
