import { describe, expect, test } from 'bun:test'
import type { KubeClient } from '../../../src/kube/client.ts'
import type { KubeObject } from '../../../src/kube/object.ts'
import { awaitHealth, healthLine, Unhealthy } from '../../../src/os/cluster/health/run.ts'
import { healthSteps } from '../../../src/os/cluster/health/steps.ts'
import type { ClusterView } from '../../../src/os/cluster/health/view.ts'
import type { machine } from '../../../src/rpc/messages.ts'

/** A healthy cluster of one control plane and one worker, to be spoiled by tests. */
function healthy() {
  const services = (...ids: string[]) =>
    ids.map((id) => ({ id, state: 'Running', health: { unknown: false, healthy: true, lastMessage: '' }, events: { events: [] } }))
  const node = (name: string, address: string): KubeObject => ({
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name },
    spec: {},
    status: { addresses: [{ type: 'InternalIP', address }], conditions: [{ type: 'Ready', status: 'True' }] },
  })
  const pod = (name: string): KubeObject => ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'kube-system' },
    status: { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] },
  })
  const owner = (spec: object, status: object): KubeObject => ({ apiVersion: 'apps/v1', kind: 'x', metadata: { name: 'x' }, spec, status })
  return {
    services: { '10.5.0.2': services('apid', 'etcd', 'kubelet'), '10.5.0.3': services('apid', 'kubelet') } as Record<string, unknown[]>,
    members: [{ id: '1', hostname: 'cp-1', peerUrls: ['https://10.5.0.2:2380'], clientUrls: [], isLearner: false }] as machine.EtcdMember[],
    memory: 4 * 1024 ** 3,
    stage: 'running',
    enabled: true,
    addresses: {} as Record<string, string[]>,
    diagnostics: new Map<string, unknown>(),
    config: 'version: v1alpha1\n',
    nodes: [node('cp-1', '10.5.0.2'), node('worker-1', '10.5.0.3')],
    pods: {
      'tier=control-plane': ['apiserver', 'controller-manager', 'scheduler'].map((name) => pod(`kube-${name}-cp-1`)),
      'k8s-app=kube-proxy': [pod('kube-proxy-a'), pod('kube-proxy-b')],
      'k8s-app=kube-dns': [pod('coredns-a'), pod('coredns-b')],
    } as Record<string, KubeObject[]>,
    owners: {
      'k8s-app=kube-proxy': [owner({}, { desiredNumberScheduled: 2 })],
      'k8s-app=kube-dns': [owner({ replicas: 2 }, {})],
    } as Record<string, KubeObject[]>,
  }
}

function view(state: ReturnType<typeof healthy>): ClusterView {
  const list = async ({ kind }: { kind: string }, { labelSelector = '' } = {}) => {
    if (kind === 'Node') return { items: state.nodes, resourceVersion: '1' }
    return { items: (kind === 'Pod' ? state.pods : state.owners)[labelSelector] ?? [], resourceVersion: '1' }
  }
  return {
    controlPlanes: ['10.5.0.2'],
    workers: ['10.5.0.3'],
    machine: (address) => ({
      services: async () => (state.services[address] ?? []) as machine.ServiceInfo[],
      etcdMembers: async () => state.members,
      memory: async () => state.memory,
      mounts: async () => [],
      async resources(_, type) {
        if (type.startsWith('MachineStatuses')) return new Map([['machine', { stage: state.stage }]])
        const [, component] = /^(ControllerManager|Scheduler)Configs/.exec(type) ?? []
        if (component)
          return new Map([[component === 'Scheduler' ? 'kube-scheduler' : 'kube-controller-manager', { enabled: state.enabled }]])
        if (type.startsWith('MachineConfigs')) return new Map([['v1alpha1', state.config]])
        if (type.startsWith('NodeAddresses')) return new Map([['current', { addresses: state.addresses[address] ?? [] }]])
        return state.diagnostics
      },
    }),
    kubernetes: async () => ({ list }) as unknown as KubeClient,
  }
}

async function check(state: ReturnType<typeof healthy>): Promise<string[]> {
  const lines: string[] = []
  const options = { timeout: 30, interval: 1000, onEvent: (event: Parameters<typeof healthLine>[0]) => lines.push(healthLine(event)) }
  await awaitHealth(healthSteps(), view(state), options).catch((error) => {
    if (!(error instanceof Unhealthy)) throw error
    lines.push(`failed ${error.message}`)
  })
  return lines
}

test('a healthy cluster passes all sixteen steps in order', async () => {
  const lines = await check(healthy())
  expect(lines.length).toBe(32)
  expect(lines.slice(0, 2)).toEqual(['waiting for etcd to be healthy: ...', 'waiting for etcd to be healthy: OK'])
  expect(lines.every((line) => /: (\.\.\.|OK)$/.test(line))).toBe(true)
})

test('etcd and Kubernetes may use another network of the machines', async () => {
  const state = healthy()
  state.addresses = { '10.5.0.2': ['10.5.0.2/24', '172.30.0.2/24'], '10.5.0.3': ['10.5.0.3/24', '172.30.0.3/24'] }
  state.members[0]!.peerUrls = ['https://172.30.0.2:2380']
  for (const { status } of state.nodes)
    for (const each of (status as { addresses: { address: string }[] }).addresses) each.address = each.address.replace('10.5.0', '172.30.0')
  expect((await check(state)).at(-1)).toBe('waiting for all k8s nodes to report schedulable: OK')
})

test('a cluster without a network skips what cannot be', async () => {
  const state = { ...healthy(), config: 'cluster:\n    network:\n        cni:\n            name: none\n' }
  const skipped = (await check(state)).filter((line) => line.endsWith('SKIP'))
  expect(skipped).toEqual(['waiting for all k8s nodes to report ready: SKIP', 'waiting for coredns to report ready: SKIP'])
})

test('whether a cluster has a network is read as machines read their configuration', async () => {
  // A merge key, a document that cannot be read, and a key that is there twice.
  const merged = 'cluster:\n    network: &n\n        cni:\n            <<: {name: none}\n'
  for (const [config, none] of [
    [merged, true],
    [`${merged}---\ncluster: [`, false],
    ['cluster:\n    network:\n        cni: {name: none, name: flannel}\n', false],
  ] as const) {
    const skipped = (await check({ ...healthy(), config })).filter((line) => line.endsWith('SKIP'))
    expect([config, skipped.length > 0]).toEqual([config, none])
  }
})

test('a cluster without kube-proxy and CoreDNS skips them', async () => {
  const skipped = (await check({ ...healthy(), owners: {} })).filter((line) => line.endsWith('SKIP'))
  expect(skipped).toEqual(['waiting for kube-proxy to report ready: SKIP', 'waiting for coredns to report ready: SKIP'])
})

describe('a control plane without components that its configuration disables', () => {
  const disabled = () => {
    const state = healthy()
    state.enabled = false
    state.pods['tier=control-plane'] = state.pods['tier=control-plane']!.slice(0, 1)
    return state
  }

  test('is healthy when others do their work', async () => {
    expect((await check(disabled())).at(-1)).toBe('waiting for all k8s nodes to report schedulable: OK')
  })

  test('is named where pods need them', async () => {
    const state = disabled()
    state.pods['k8s-app=kube-proxy'] = []
    expect((await check(state)).at(-1)).toBe(
      'failed waiting for kube-proxy to report ready: 0 of 2 pods of kube-proxy are there: ' +
        'kube-controller-manager runs on no control plane (machine.controlPlane.controllerManager.disabled), ' +
        'kube-scheduler runs on no control plane (machine.controlPlane.scheduler.disabled)',
    )
  })
})

const spoiled: [string, (state: ReturnType<typeof healthy>) => void, string][] = [
  ['a service that is missing', (s) => s.services['10.5.0.2']!.pop(), 'kubelet to be healthy: 10.5.0.2: service "kubelet" not found'],
  [
    'a service that does not run',
    (s) =>
      Object.assign(s.services['10.5.0.2']![1] as object, { state: 'Waiting', events: { events: [{ msg: 'Waiting for time sync' }] } }),
    'etcd to be healthy: 10.5.0.2: service "etcd" not in expected state "Running": current state [Waiting] Waiting for time sync',
  ],
  [
    'a learner',
    (s) => Object.assign(s.members[0]!, { isLearner: true }),
    'etcd members to be control plane nodes: etcd member "cp-1" is still a learner',
  ],
  [
    'a member from elsewhere',
    (s) => s.members.push({ ...s.members[0]!, hostname: 'x', peerUrls: ['https://10.9.9.9:2380'] }),
    'etcd members to be control plane nodes: etcd member "x" (https://10.9.9.9:2380) is not a control plane node',
  ],
  [
    'a small machine',
    (s) => Object.assign(s, { memory: 800 * 1024 ** 2 }),
    'all nodes memory sizes: 10.5.0.2: memory is 800 MiB, want at least 1698 MiB',
  ],
  [
    'a diagnostic',
    (s) => s.diagnostics.set('kubelet-csr', { message: 'CSR pending' }),
    'no diagnostics: 10.5.0.2: kubelet-csr: CSR pending',
  ],
  [
    'a machine that boots',
    (s) => Object.assign(s, { stage: 'booting' }),
    'all nodes to finish boot sequence: 10.5.0.2: stage is "booting", want "running"',
  ],
  ['a node that is missing', (s) => s.nodes.pop(), 'all k8s nodes to report: 10.5.0.3 not in Kubernetes yet: it knows cp-1'],
  [
    'a static pod that is not ready',
    (s) => Object.assign(s.pods['tier=control-plane']![2]!, { status: { phase: 'Running' } }),
    'all control plane components to be ready: static pod "kube-scheduler-cp-1" is not ready',
  ],
  [
    'a node that is not ready',
    (s) => Object.assign(s.nodes[1]!.status as object, { conditions: [{ type: 'Ready', status: 'False', message: 'no CNI' }] }),
    'all k8s nodes to report ready: worker-1 is not ready: no CNI',
  ],
  ['a pod that is missing', (s) => s.pods['k8s-app=kube-dns']!.pop(), 'coredns to report ready: 1 of 2 pods of coredns are there'],
  [
    'a cordoned node',
    (s) => Object.assign(s.nodes[0]!, { spec: { unschedulable: true } }),
    'all k8s nodes to report schedulable: some nodes are not schedulable: cp-1',
  ],
]

for (const [what, spoil, reason] of spoiled) {
  test(`${what} is waited for, and named when time is up`, async () => {
    const state = healthy()
    spoil(state)
    const lines = await check(state)
    expect(lines.slice(-2)).toEqual([`waiting for ${reason}`, `failed waiting for ${reason}`])
  })
}

test('pods that ended with a node are not waited for', async () => {
  const state = healthy()
  const dns = state.pods['k8s-app=kube-dns']!
  for (const phase of ['Succeeded', 'Failed']) {
    const conditions = [{ type: 'Ready', status: 'False', reason: 'PodCompleted' }]
    dns.push({ apiVersion: 'v1', kind: 'Pod', metadata: { name: `coredns-${phase}` }, status: { phase, conditions } })
  }
  expect(await check(state)).toContain('waiting for coredns to report ready: OK')
})

test('a machine that does not answer, or fails, is named', async () => {
  const run = async (services: () => Promise<never>) => {
    const state = healthy()
    const whole = view(state)
    const one = { ...whole, machine: (address: string) => ({ ...whole.machine(address), ...(address === '10.5.0.3' && { services }) }) }
    const step = healthSteps().find(({ name }) => name === 'kubelet to be healthy')!
    const failure = awaitHealth([step], one, { timeout: 30, interval: 1000, onEvent: () => {} })
    return expect(failure).rejects
  }
  await (await run(() => new Promise(() => {}))).toThrow('waiting for kubelet to be healthy: no answer from 10.5.0.3 within 1 s')
  await (await run(async () => Promise.reject(new Error('call "/machine.MachineService/ServiceList": gone')))).toThrow(
    'waiting for kubelet to be healthy: 10.5.0.3: call "/machine.MachineService/ServiceList": gone',
  )
})
