import { afterEach, describe, expect, test } from 'bun:test'
import { type Controller, defineController, exclusive } from '../../../src/cosi/controller.ts'
import { silent } from '../../../src/cosi/log.ts'
import { Runtime } from '../../../src/cosi/runtime.ts'
import { Store } from '../../../src/cosi/store.ts'
import { configMachineType } from '../../../src/os/config/controllers/machine-type.ts'
import { persistConfig } from '../../../src/os/config/controllers/persistence.ts'
import type { HistoryEntry } from '../../../src/os/config/history/history.ts'
import { keepConfig } from '../../../src/os/config/keep.ts'
import { MachineConfig } from '../../../src/os/config/resources/machine-config.ts'
import { contacts } from '../../../src/os/contacts.ts'
import { explainMachine, explainResource, type Machinery } from '../../../src/os/diagnosis/explain.ts'
import { configScheduler } from '../../../src/os/k8s/controllers/control-plane/scheduler-config.ts'
import { configStaticEndpoint } from '../../../src/os/k8s/controllers/kube-prism/static-endpoint.ts'
import { NodeStatus } from '../../../src/os/k8s/resources/node.ts'
import { Nodename } from '../../../src/os/k8s/resources/nodename.ts'
import { StaticPod, StaticPodStatus } from '../../../src/os/k8s/resources/static-pod.ts'
import { NetworkStatus } from '../../../src/os/network/resources/network-status.ts'
import { TimeServerStatus } from '../../../src/os/network/resources/time-server.ts'
import { observeMachineStatus } from '../../../src/os/runtime/controllers/machine-status.ts'
import { observeServices } from '../../../src/os/runtime/controllers/service.ts'
import { Events } from '../../../src/os/runtime/events.ts'
import { issueApiCertificates } from '../../../src/os/secrets/controllers/api.ts'
import { issueEtcdCertificates } from '../../../src/os/secrets/controllers/etcd.ts'
import { configRootEtcd, configRootOS } from '../../../src/os/secrets/controllers/roots.ts'
import { ApiCertificate } from '../../../src/os/secrets/resources/api-certificate.ts'
import { CertSAN } from '../../../src/os/secrets/resources/cert-san.ts'
import { EtcdSecret } from '../../../src/os/secrets/resources/etcd-secret.ts'
import { SiderolinkStatus } from '../../../src/os/siderolink/resources/siderolink.ts'
import { syncTime } from '../../../src/os/time/controllers/sync.ts'
import { TimeStatus } from '../../../src/os/time/resources/time-status.ts'
import { TimeServerError } from '../../../src/os/time/time-server.ts'
import type { ServiceDefinition } from '../../../src/supervise/definition.ts'
import { Supervisor } from '../../../src/supervise/supervisor.ts'
import { config, machineInMemory } from '../config/machine.ts'

const endings: (() => void)[] = []
afterEach(() => {
  for (const end of endings.splice(0)) end()
})

const roomy = { size: 1 << 30, available: 1 << 29, files: 1000, filesFree: 900 }

/** A machine with these controllers on a real store, runtime and supervisor. */
function machine(controllers: Controller[], services: ServiceDefinition[] = [], usage = roomy) {
  const store = new Store()
  const runtime = new Runtime(store, { log: silent })
  const supervisor = new Supervisor({ store })
  const events = new Events()
  runtime.register(
    ...controllers,
    observeMachineStatus({ events, sequencer: { running: undefined } as never }),
    observeServices({ supervisor, events }),
  )
  runtime.start()
  supervisor.load(...services)
  supervisor.start(...services.map(({ id }) => id))
  endings.push(
    () => runtime.stop(),
    () => void supervisor.stopAll(),
  )
  const machinery: Machinery = {
    store,
    runtime,
    supervisor,
    definition: (id) => services.find((service) => service.id === id),
    world: {
      mode: 'container',
      files: {
        statfs: () => usage as never,
        readTextIfThere: () => undefined,
        exists: () => false,
        list: () => [],
        walk: async function* () {},
      },
      time: { clock: () => BigInt(Date.now()) * 1_000_000n },
      net: { openNetwork: () => fail() },
    },
    log: (id) => supervisor.logs.get(id),
  }
  return { store, runtime, supervisor, machinery }
}

/** A clock that nobody may move: no server answers here. */
const untouched = {
  clock: () => BigInt(Date.now()) * 1_000_000n,
  setClock: () => fail(),
  adjustClock: () => fail(),
  deviceClock: () => fail(),
}

function fail(): never {
  throw new Error('the clock was moved')
}

const online = { addressReady: true, connectivityReady: true, hostnameReady: true, etcFilesReady: true }
const inStep = { synced: true, epoch: 0, syncDisabled: false }

/** All a machine has when nothing is wrong with it but what a test does. */
function well(store: Store): void {
  store.put(NetworkStatus, 'status', online)
  if (!store.get(TimeStatus, 'node')) store.put(TimeStatus, 'node', inStep)
}

const service = (id: string, rest: Partial<ServiceDefinition>): ServiceDefinition => ({
  id,
  dependsOn: [],
  restart: 'always',
  runner: async () => ({ description: 'runs', exit: new Promise(() => {}), kill: () => {} }),
  ...rest,
})

describe('finds the true cause of', () => {
  test('a wrong endpoint: nobody signs the certificate, and nothing answers where the control plane should be', async () => {
    const { store, runtime, machinery } = machine([configMachineType, configRootOS, configStaticEndpoint, issueApiCertificates()])
    well(store)
    store.put(CertSAN, 'api', { fqdn: 'worker-1', dnsNames: ['worker-1'], ips: ['10.0.0.2'] })
    store.put(MachineConfig, 'v1alpha1', config('worker').replace('https://10.0.0.1:6443', 'https://127.0.0.1:1'))
    await runtime.settled()
    const { causes, summary } = await explainResource(machinery, ApiCertificate, 'api')
    expect(causes.map(({ subject }) => subject)).toEqual([
      'cluster endpoint https://127.0.0.1:1',
      'controller secrets.APIController',
      'ApiCertificates.secrets.talos.dev/api',
    ])
    expect(summary).toContain('check cluster.controlPlane.endpoint')
    expect(causes[1]?.error).toContain('127.0.0.1:50001')
    expect(causes[1]?.times).toBe(1)
  })

  test('a task that fails and is retried: it is named without digests, and the service that waits for its output leads to it', async () => {
    const applying = defineController({
      name: 'etcd.ApplyController',
      inputs: {},
      outputs: { secret: exclusive(EtcdSecret) },
      reconcile: ({ background }) =>
        background({ name: 'apply settings', of: '1rcivsscmc0lt' }, async () => {
          throw new Error('connection refused')
        }),
    })
    const etcd = service('etcd', { wait: (view) => (view.get(EtcdSecret, 'etcd') ? [] : ['etcd certificates']) })
    const { store, runtime, machinery } = machine([applying], [etcd])
    well(store)
    await runtime.settled()
    const { causes, summary } = await explainMachine(machinery)
    expect(causes[0]).toMatchObject({
      subject: 'controller etcd.ApplyController',
      sentence: 'it keeps retrying "apply settings"',
      error: 'connection refused',
      times: 1,
    })
    expect(summary).toContain('it keeps retrying "apply settings"')
  })

  test('an unreachable image: the service that waits for it names it', async () => {
    const message = 'pull image "registry.invalid/kubelet:v1": failed to resolve reference: lookup registry.invalid: no such host'
    const prepare = async () => {
      throw new Error(message)
    }
    const { store, supervisor, machinery } = machine([], [service('cri', {}), service('kubelet', { dependsOn: ['cri'], prepare })])
    well(store)
    while (supervisor.get('kubelet')?.state !== 'Waiting' || !supervisor.get('kubelet')?.events.at(-1)?.message.includes('starting again'))
      await Bun.sleep(1)
    const { causes } = await explainMachine(machinery)
    expect(causes[0]).toMatchObject({ subject: 'service kubelet', sentence: 'it does not stay up', times: 1 })
    expect(causes[0]?.error).toContain(message)
  })

  test('an image of a static pod that cannot be pulled', async () => {
    const { store, runtime, machinery } = machine([configMachineType])
    well(store)
    store.put(MachineConfig, 'v1alpha1', config('controlplane'))
    const waiting = { reason: 'ImagePullBackOff', message: 'Back-off pulling image "registry.invalid/api:v1"' }
    store.put(StaticPodStatus, 'kube-system/kube-apiserver-cp', {
      containerStatuses: [{ name: 'kube-apiserver', ready: false, state: { waiting } }],
    })
    await runtime.settled()
    const { causes } = await explainMachine(machinery)
    const pod = causes.find(({ subject }) => subject.startsWith('StaticPodStatuses.'))
    expect(pod).toMatchObject({ sentence: 'the image of container "kube-apiserver" cannot be pulled', error: waiting.message, because: [] })
  })

  test('a missing secret: the place of the configuration that lacks it', async () => {
    const { store, runtime, machinery } = machine([configMachineType, configRootEtcd, issueEtcdCertificates()])
    well(store)
    store.put(MachineConfig, 'v1alpha1', config('controlplane', 'cluster: {etcd: {ca: {$patch: delete}}}'))
    await runtime.settled()
    const { causes } = await explainResource(machinery, EtcdSecret, 'etcd')
    const root = causes.find(({ subject }) => subject.startsWith('EtcdRootSecrets.'))
    expect(root?.sentence).toContain('secrets.RootEtcdController makes it from the machine configuration, which does not declare it')
    expect(root?.error).toContain('cluster.etcd.ca')
    expect(causes.at(-1)?.subject).toBe('EtcdSecrets.secrets.talos.dev/etcd')
  })

  test('a machine’s configuration is judged as that of a machine, not of a container', async () => {
    const wrong = async (mode: 'container' | 'metal') => {
      const { store, runtime, machinery } = machine([configMachineType, configRootEtcd, issueEtcdCertificates()])
      well(store)
      store.put(
        MachineConfig,
        'v1alpha1',
        config('controlplane', 'machine: {install: {$patch: delete}}\ncluster: {etcd: {ca: {$patch: delete}}}'),
      )
      await runtime.settled()
      const { causes } = await explainResource({ ...machinery, world: { ...machinery.world, mode } }, EtcdSecret, 'etcd')
      return causes.find(({ subject }) => subject.startsWith('EtcdRootSecrets.'))?.error
    }
    expect(await wrong('metal')).toContain('machine.install')
    expect(await wrong('container')).not.toContain('machine.install')
  })

  test('an invalid extra argument of a static pod: the last words of the container', async () => {
    const { store, runtime, machinery } = machine([configMachineType])
    well(store)
    store.put(MachineConfig, 'v1alpha1', config('controlplane'))
    store.put(StaticPodStatus, 'kube-system/kube-apiserver-cp', {
      conditions: [{ type: 'Ready', status: 'False' }],
      containerStatuses: [
        {
          name: 'kube-apiserver',
          ready: false,
          restartCount: 3,
          state: { waiting: { reason: 'CrashLoopBackOff', message: 'back-off 40s' } },
          lastState: { terminated: { exitCode: 1, reason: 'Error', message: 'Error: unknown flag: --no-such-flag\n' } },
        },
      ],
    })
    await runtime.settled()
    const { causes } = await explainMachine(machinery)
    const pod = causes.find(({ subject }) => subject.startsWith('StaticPodStatuses.'))
    expect(pod).toMatchObject({
      sentence: 'container "kube-apiserver" is started and ends with exit code 1',
      error: 'Error: unknown flag: --no-such-flag',
      times: 3,
      because: [],
    })
    expect(causes.at(-1)?.subject).toBe('MachineStatuses.runtime.talos.dev/machine')
  })

  test('a missing scheduler: the key that disables it', async () => {
    const { store, runtime, machinery } = machine([configMachineType, configScheduler])
    well(store)
    const disabled = JSON.stringify({ machine: { controlPlane: { scheduler: { disabled: true } } } })
    store.put(MachineConfig, 'v1alpha1', config('controlplane', disabled))
    await runtime.settled()
    const because = 'it is not there, because machine.controlPlane.scheduler.disabled is set'
    expect((await explainResource(machinery, StaticPod, 'kube-scheduler')).causes.map(({ sentence }) => sentence)).toEqual([because])
    const { causes } = await explainResource(machinery, StaticPodStatus, 'kube-system/kube-scheduler-cp')
    expect(causes.map(({ sentence }) => sentence)).toEqual([because])
    const others = await explainResource(machinery, StaticPod, 'kube-controller-manager')
    expect(others.causes.map(({ sentence }) => sentence)).not.toContain(because)
  })

  test('an etcd that ends: its last words, also where its users ended of it', async () => {
    const ending = service('etcd', {
      health: { check: () => new Promise(() => {}) },
      async runner({ output }) {
        output.line('{"level":"warn","msg":"failed to verify flags","error":"--election-timeout[1ms] is too short"}')
        return { description: 'runs', exit: Promise.resolve({ ok: false, message: 'exited with code 1' }), kill: () => {} }
      },
    })
    const { store, runtime, supervisor, machinery } = machine([configMachineType], [ending])
    well(store)
    store.put(MachineConfig, 'v1alpha1', config('controlplane'))
    store.put(StaticPodStatus, 'kube-system/kube-scheduler-cp', {
      containerStatuses: [{ name: 'kube-scheduler', ready: false, state: { terminated: { exitCode: 1, message: 'Leaderelection lost' } } }],
    })
    await new Promise<void>((resolve) => {
      supervisor.subscribe(({ step }) => step === 'retry' && resolve())
      if (supervisor.get('etcd')?.events.some(({ step }) => step === 'retry')) resolve()
    })
    await runtime.settled()
    const { causes, summary } = await explainMachine(machinery)
    expect(summary).toBe('service etcd: it does not stay up: failed to verify flags: --election-timeout[1ms] is too short')
    expect(causes.find(({ subject }) => subject.startsWith('StaticPodStatuses.'))?.because).toEqual(['service etcd'])
  })

  test('a time source that does not answer', async () => {
    const requested = Promise.withResolvers<void>()
    const source = (name: string) => ({
      name,
      async ask(): Promise<never> {
        setImmediate(requested.resolve)
        throw new TimeServerError(name, 'timeout', 'no answer within 3 s')
      },
    })
    const parts = { source, clock: { slew() {}, step() {} }, time: { now: () => 0, sleep: () => new Promise<void>(() => {}) } }
    const { store, runtime, machinery } = machine([syncTime({ mode: 'metal', time: untouched }, parts), configMachineType])
    store.put(NetworkStatus, 'status', online)
    store.put(MachineConfig, 'v1alpha1', config('worker'))
    store.put(TimeServerStatus, 'timeservers', { timeServers: ['127.0.0.1:1'] })
    await requested.promise
    await runtime.settled()
    const { causes, summary } = await explainResource(machinery, TimeStatus, 'node')
    expect(causes.map(({ subject }) => subject)).toEqual([
      'time server 127.0.0.1:1',
      'controller time.SyncController',
      'TimeStatuses.v1alpha1.talos.dev/node',
    ])
    expect(summary).toContain('it does not answer: check machine.time.servers')
    expect(causes[1]?.because).toEqual(['time server 127.0.0.1:1'])
  })

  test('a full disk: who cannot write, and which one is full', async () => {
    const full = machineInMemory()
    full.files.full = true
    const kept = { keep: async () => void (await keepConfig(full.files as never, config('worker'))) }
    const { store, runtime, machinery } = machine([persistConfig(kept)], [], { ...roomy, available: 0 })
    well(store)
    store.put(MachineConfig, 'persistent', config('worker'))
    await runtime.settled()
    const { causes } = await explainMachine(machinery)
    expect(causes[0]?.subject).toStartWith('file system /')
    const failing = causes.find(({ subject }) => subject === 'controller config.PersistenceController')
    expect(failing).toMatchObject({ error: 'write "/system/state/config.yaml": ENOSPC' })
    expect(failing?.because).toContain('file system /system/state')
  })
})

test('what exists and is healthy needs no explanation', async () => {
  const { store, runtime, machinery } = machine([])
  well(store)
  await runtime.settled()
  expect(await explainResource(machinery, TimeStatus, 'node')).toEqual({
    subject: 'TimeStatuses.v1alpha1.talos.dev/node',
    well: true,
    summary: 'TimeStatuses.v1alpha1.talos.dev/node is healthy',
    causes: [],
  })
})

test('a machine that waits for its configuration reports it', async () => {
  const { runtime, machinery } = machine([])
  await runtime.settled()
  const { well, causes } = await explainMachine(machinery)
  expect(well).toBe(false)
  expect(causes.find(({ subject }) => subject === 'MachineConfigs.config.talos.dev/v1alpha1')?.sentence).toContain('it is not there')
})

test('on a control plane whose etcd does not run, nobody is sent to look at the endpoint', async () => {
  const polling = defineController({
    name: 'k8s.AnyController',
    contacts: contacts.controlPlane,
    inputs: {},
    outputs: { status: exclusive(NodeStatus) },
    reconcile: ({ background }) =>
      background('watch', async (signal, _, report) => {
        report(new Error('GET https://127.0.0.1:7445/api/v1/nodes: ECONNREFUSED'))
        await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()))
      }),
  })
  const etcd = service('etcd', { wait: (view) => (view.get(EtcdSecret, 'etcd') ? [] : ['etcd certificates']) })
  const { store, runtime, machinery } = machine([configMachineType, configRootEtcd, issueEtcdCertificates(), polling], [etcd])
  well(store)
  store.put(Nodename, 'nodename', { nodename: 'cp', hostnameVersion: '1', skipNodeRegistration: false })
  const broken = 'cluster: {etcd: {ca: {$patch: delete}}, controlPlane: {endpoint: "https://127.0.0.1:1"}}'
  store.put(MachineConfig, 'v1alpha1', config('controlplane', broken))
  await runtime.settled()
  const { causes, summary } = await explainMachine(machinery)
  expect(summary).toStartWith('EtcdRootSecrets.secrets.talos.dev/etcd: ')
  expect(causes.some(({ subject }) => subject.startsWith('cluster endpoint'))).toBe(false)
  expect(causes.find(({ subject }) => subject === 'controller k8s.AnyController')?.because).toEqual(['service etcd'])
})

test('a service that waits for another is explained by the other, and circles end', async () => {
  const { store, runtime, machinery } = machine(
    [],
    [
      service('a', { dependsOn: ['b'] }),
      service('b', { wait: (view) => (view.get(Nodename, 'nodename') ? [] : ['nodename']) }),
      service('c', { dependsOn: ['a'] }),
    ],
  )
  well(store)
  await runtime.settled()
  const { causes } = await explainMachine(machinery)
  const of = (subject: string) => causes.find((cause) => cause.subject === subject)
  expect(of('service a')).toMatchObject({ sentence: 'waiting for service "b" to be "up"', because: ['service b'] })
  expect(of('service b')?.because).toEqual(['Nodenames.kubernetes.talos.dev/nodename'])
  expect(of('Nodenames.kubernetes.talos.dev/nodename')?.because).toEqual([])
})

test('a configuration that was reverted because it cut the machine off is reported, for as long as it is the newest', async () => {
  const { store, machinery } = machine([])
  well(store)
  const by = { roles: ['os:admin'], peer: '10.0.0.9', actor: 'alice' }
  const entry = {
    id: 5,
    time: '2026-11-21T12:00:00Z',
    mode: 'auto' as const,
    by,
    text: '',
    outcome: 'reverted' as const,
    cause: 'unreached' as const,
  }
  const of = async (...entries: HistoryEntry[]) => (await explainMachine({ ...machinery, history: { list: () => entries } })).summary
  expect(await of(entry)).toEndWith(
    'configuration 5, applied by alice at 2026-11-21T12:00:00Z, is not in force: it was reverted, for the machine was not reached after it',
  )
  expect(await of(entry, { ...entry, id: 6, cause: 'replaced' })).not.toContain('reverted')
})

test('a silent management server is a cause, and one that is heard is none', async () => {
  const { machinery, store } = machine([])
  const causes = async () => (await explainMachine(machinery)).causes.map(({ sentence }) => sentence)
  store.put(SiderolinkStatus, 'siderolink-status', { host: 'omni.example', connected: false, linkName: 'siderolink', grpcTunnel: false })
  expect(await causes()).toContainEqual(expect.stringMatching(/^the management server at omni\.example was not heard lately: .* UDP/))
  store.put(SiderolinkStatus, 'siderolink-status', { host: 'omni.example', connected: true, linkName: 'siderolink', grpcTunnel: false })
  expect((await causes()).join()).not.toContain('management server')
})
