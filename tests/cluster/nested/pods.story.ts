/**
 * Nodes as pods: the manifest of docs/clusters.md makes a second cluster on one of containers. Its pod network runs inside that of the
 * first one, its control plane keeps what it has on a volume claim when its pod is replaced, and its worker joins again without one.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { figure } from '../../support/figures.ts'
import { eventually, type KubeItem, succeeded } from '../cluster.ts'
import { inner, type Manifest, manifests, namespace, PodCluster } from './pod-cluster.ts'

const cluster = new PodCluster('pods', '10.78.0')
const claim = 'controlplane-1'
const names = ['controlplane-1', 'worker-1']

/** The pods of the manifest; the control plane's disk is the claim. */
const pods = (): Manifest[] =>
  manifests()
    .filter(({ kind }) => kind === 'Pod')
    .map(({ spec, ...object }) => {
      if (object.metadata.name !== claim) return { ...object, spec }
      const volumes = spec.volumes.map((volume) =>
        volume.name === 'disk' ? { name: 'disk', persistentVolumeClaim: { claimName: claim } } : volume,
      )
      return { ...object, spec: { ...spec, volumes } }
    })

const podNamed = (name: string) => pods().filter(({ metadata }) => metadata.name === name)

/** A volume in a folder of the host, and the claim for it. */
const volume = [
  {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: { name: claim },
    spec: {
      capacity: { storage: '10Gi' },
      accessModes: ['ReadWriteOnce'],
      storageClassName: '',
      hostPath: { path: '/var/mnt/controlplane-1', type: 'DirectoryOrCreate' },
    },
  },
  {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name: claim, namespace },
    spec: { accessModes: ['ReadWriteOnce'], storageClassName: '', volumeName: claim, resources: { requests: { storage: '10Gi' } } },
  },
]

interface NodeItem extends KubeItem {
  status: KubeItem['status'] & { addresses: { type: string; address: string }[]; allocatable: { memory: string } }
}

const since = (start: number) => `${((performance.now() - start) / 1000).toFixed(1)} s`

/** Runs talosctl on the node that is a pod, and gives its output. */
const on = async (pod: string, ...args: string[]): Promise<string> => {
  const address = await cluster.addressOf(pod)
  return eventually(async () => succeeded(await cluster.talosctl('-n', address, ...args)).stdout)
}

beforeAll(async () => {
  await cluster.create()
  await cluster.apply(volume)
}, 400_000)
afterAll(() => cluster.close(), 120_000)

test('the pods of the manifest become ready, and their API answers through a forwarded port', async () => {
  const start = performance.now()
  await cluster.apply(pods())
  for (const name of names) await cluster.ready(name)
  figure('nested', 'pods applied to both ready (image pulled)', since(start))
  await cluster.forward()
  for (const name of names) expect(await on(name, 'version')).toContain('Tag:')
  // The worker is reached through the control plane, which verifies it.
  expect(await on('worker-1', 'get', 'machinetype', '-o', 'jsonpath={.spec}')).toBe('worker\n')
}, 400_000)

test('both join the second cluster, and are ready there', async () => {
  const start = performance.now()
  await on('controlplane-1', 'bootstrap')
  await cluster.fetchKubeconfig()
  await cluster.nodesReady(names)
  figure('nested', 'bootstrap to both nodes Ready', since(start))
  for (const { metadata, status } of (await cluster.objects('nodes')) as NodeItem[]) {
    const internal = status.addresses.flatMap(({ type, address }) => (type === 'InternalIP' ? address : []))
    expect(internal).toEqual([await cluster.addressOf(metadata.name)])
    // No more than the limit of its container.
    const [, mebibytes = ''] = /^(\d+)Mi$/.exec(status.allocatable.memory) ?? []
    expect(Number(mebibytes)).toBeGreaterThan(1024)
    expect(Number(mebibytes)).toBeLessThan(metadata.name === 'worker-1' ? 2048 : 3072)
  }
}, 400_000)

test('their services run', async () => {
  for (const [name, expected] of [
    ['controlplane-1', ['apid', 'containerd', 'cri', 'etcd', 'kubelet', 'machined', 'registryd', 'trustd']],
    ['worker-1', ['apid', 'containerd', 'cri', 'kubelet', 'machined', 'registryd']],
  ] as const) {
    await eventually(async () => {
      const lines = (await on(name, 'services')).trim().split('\n').slice(1)
      const running = lines.map((line) => line.trim().split(/\s+/)).filter(([, , state, health]) => state === 'Running' && health === 'OK')
      expect(running.map(([, service]) => service).sort()).toEqual([...expected])
    })
  }
})

test('the volumes that a kubelet made for a node are closed to other users', async () => {
  const lines = (await on('worker-1', 'list', '-l', '/')).split('\n').map((line) => line.trim().split(/\s+/))
  const modes = Object.fromEntries(lines.map((fields) => [fields.at(-1), fields[1]]))
  const closed = 'drwxr-xr-x'
  expect(modes).toMatchObject({ opt: closed, run: closed, system: closed, var: closed })
})

test('a pod of the second cluster runs on the worker; its log is read through both networks', async () => {
  const [image] = (await cluster.objects('pods', '-n', 'kube-system', '-l', 'k8s-app=kube-dns')).map(
    ({ spec }) => (spec as { containers?: { image: string }[] }).containers?.[0]?.image ?? '',
  )
  const spec = { nodeName: 'worker-1', restartPolicy: 'Never', containers: [{ name: 'inside', image, imagePullPolicy: 'Never' }] }
  succeeded(
    await cluster.kubectl(['apply', '-f', '-'], JSON.stringify({ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'inside' }, spec })),
  )
  succeeded(await cluster.kubectl(['wait', 'pod/inside', '--for=condition=Ready', '--timeout=25s']))
  await eventually(async () => expect(succeeded(await cluster.kubectl(['logs', 'inside'])).stdout).toContain('CoreDNS-'))
  const [pod] = await cluster.objects('pods', '--field-selector', 'metadata.name=inside')
  expect(pod?.status.podIP).toStartWith(inner.pods.split('.').slice(0, 2).join('.'))
})

/** What a node drew when it first started, kept on its disk. */
const identity = (pod: string) => on(pod, 'get', 'identity', '-o', 'jsonpath={.spec.nodeId}')

test('a node that reboots through its API starts again in the same pod with what is on its disk', async () => {
  const before = await identity('worker-1')
  await on('worker-1', 'reboot', '--wait=false')
  const restarts = ['-n', namespace, 'wait', 'pod/worker-1', '--for=jsonpath={.status.containerStatuses[0].restartCount}=1']
  succeeded(await cluster.outer.kubectl([...restarts, '--timeout=120s']))
  await cluster.ready('worker-1')
  expect(await identity('worker-1')).toBe(before)
}, 300_000)

/** Deletes a pod and applies it again; resolves when it is ready. */
async function replace(name: string): Promise<void> {
  succeeded(await cluster.outer.kubectl(['-n', namespace, 'delete', 'pod', name, '--timeout=120s']))
  await cluster.apply(podNamed(name))
  await cluster.ready(name)
}

describe('a pod that is deleted and applied again', () => {
  test('comes back as the same control plane with its data, when its disk is a claim', async () => {
    succeeded(await cluster.kubectl(['create', 'configmap', 'kept', '--from-literal=words=from-before']))
    const [address, before] = [await cluster.addressOf('controlplane-1'), await identity('controlplane-1')]
    const start = performance.now()
    await replace('controlplane-1')
    await cluster.forward()
    const kept = await eventually(
      async () => succeeded(await cluster.kubectl(['get', 'configmap', 'kept', '-o', 'jsonpath={.data.words}'])).stdout,
      180,
    )
    figure('nested', 'control plane deleted to its API with the same data', since(start))
    expect(kept).toBe('from-before')
    expect(await cluster.addressOf('controlplane-1')).not.toBe(address)
    expect(await identity('controlplane-1')).toBe(before)
    await cluster.nodesReady(names)
  }, 500_000)

  test('joins again as the same node without what was on its disk, when that went with the pod', async () => {
    const find = async () => (await cluster.objects('nodes')).find(({ metadata }) => metadata.name === 'worker-1')
    const [node, before] = [await find(), await identity('worker-1')]
    await replace('worker-1')
    await eventually(async () => expect((await find())?.status.nodeInfo?.bootID).not.toBe(node?.status.nodeInfo?.bootID ?? ''), 180)
    await cluster.nodesReady(names)
    expect((await find())?.metadata.uid).toBe(node?.metadata.uid ?? '')
    expect(await identity('worker-1')).not.toBe(before)
  }, 500_000)
})

test('a node that is shut down through its API stays down, and its pod is complete', async () => {
  await on('worker-1', 'shutdown', '--wait=false')
  const phase = ['-n', namespace, 'wait', 'pod/worker-1', '--for=jsonpath={.status.phase}=Succeeded', '--timeout=120s']
  succeeded(await cluster.outer.kubectl(phase))
}, 200_000)
