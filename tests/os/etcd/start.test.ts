import { describe, expect, test } from 'bun:test'
import { makeClock } from '../../../src/cosi/clock.ts'
import { silent } from '../../../src/cosi/log.ts'
import { Store } from '../../../src/cosi/store.ts'
import { MachineConfig } from '../../../src/os/config/resources/machine-config.ts'
import { etcdTrouble } from '../../../src/os/diagnosis/etcd-trouble.ts'
import { configEtcd } from '../../../src/os/etcd/controllers/config.ts'
import { specEtcd } from '../../../src/os/etcd/controllers/spec.ts'
import { observeEtcdStart, startLimit } from '../../../src/os/etcd/controllers/start.ts'
import { EtcdSpec } from '../../../src/os/etcd/resources/etcd-spec.ts'
import { EtcdStart } from '../../../src/os/etcd/resources/etcd-start.ts'
import { EtcdStarts } from '../../../src/os/etcd/starts.ts'
import { sufficientWithout, viewEtcd } from '../../../src/os/etcd/view.ts'
import { memoryPath } from '../../../src/os/k8s/component/memory.ts'
import { settingsAnnotation } from '../../../src/os/k8s/component/settings.ts'
import { settleTime } from '../../../src/os/k8s/component/trial.ts'
import { tryComponentSettings } from '../../../src/os/k8s/controllers/component-trial.ts'
import { ComponentFallback, ComponentStatus, ComponentTrial } from '../../../src/os/k8s/resources/component.ts'
import { Endpoint } from '../../../src/os/k8s/resources/endpoint.ts'
import { HostnameStatus } from '../../../src/os/network/resources/hostname.ts'
import { NodeAddress } from '../../../src/os/network/resources/node-address.ts'
import { Diagnostic } from '../../../src/os/runtime/resources/diagnostic.ts'
import { Service } from '../../../src/os/runtime/resources/service.ts'
import { EtcdRootSecret } from '../../../src/os/secrets/resources/etcd-root-secret.ts'
import { EtcdSecret } from '../../../src/os/secrets/resources/etcd-secret.ts'
import { newCA } from '../../../src/pki/certificate.ts'
import { RpcError } from '../../../src/rpc/status.ts'
import type { Run, RunContext } from '../../../src/supervise/definition.ts'
import { LogRing } from '../../../src/supervise/log-ring.ts'
import type { State } from '../../../src/supervise/state.ts'
import { controlPlane, machineWith, memoryFiles } from '../k8s/machine.ts'

const withEtcd = (section: string) => controlPlane('', `etcd:\n  ca: {crt: Y3J0, key: a2V5}\n${section.replace(/^/gm, '  ')}`)
const working = withEtcd('extraArgs: {log-level: info}')
const broken = withEtcd('extraArgs: {log-level: nonsense}')
const noImage = withEtcd('extraArgs: {log-level: info}\nimage: registry.invalid/etcd:v3.6.16')
const noAddress = withEtcd('extraArgs: {log-level: info}\nadvertisedSubnets: [172.16.0.0/12]')

/** A control plane whose etcd is scripted by the test. The controllers, the store and the clock are real. */
async function played({ files = memoryFiles(), config = working, sufficient = true, pullError = '' } = {}) {
  let time = 0
  const restarts: string[] = []
  const pulls: string[] = []
  const others = { sufficient }
  const settings = () => os.store.get(EtcdSpec, 'etcd')?.metadata.annotations[settingsAnnotation] ?? ''
  const supervisor = {
    get: () => ({ state: 'Running' as State, health: health('no leader') }),
    async restart() {
      restarts.push(settings())
      start()
    },
  }
  const os = machineWith(
    [
      tryComponentSettings({ kernel: { mode: 'container', files } }),
      configEtcd,
      specEtcd,
      observeEtcdStart({
        supervisor,
        pull: async (image) => {
          pulls.push(image)
          if (pullError) throw new Error(pullError)
        },
        othersSuffice: async () => others.sufficient,
      }),
    ],
    config,
    makeClock({ elapsed: () => time }),
  )
  os.store.put(HostnameStatus, 'hostname', { hostname: 'cp-1', domainname: '' })
  os.store.put(NodeAddress, 'routed-no-k8s', { addresses: ['10.5.0.2/24'], sortAlgorithm: 'v1' })
  await os.settled()
  const starts = new EtcdStarts({ store: os.store, log: silent })
  /** The service's steps before each run. */
  const start = () => {
    os.store.put(Service, 'etcd', { running: false, healthy: false, unknown: true })
    starts.begin({ settings: settings(), image: os.store.get(EtcdSpec, 'etcd')!.spec.image })
    starts.at(settings(), 'running')
  }
  const pass = async (milliseconds: number) => {
    time += milliseconds
    // Any event of the service wakes the controllers, as their own timers would have by then.
    const { spec } = os.store.get(Service, 'etcd')!
    os.store.put(Service, 'etcd', { ...spec, unknown: !spec.unknown })
    await os.settled()
  }
  const answer = async (healthy = true) => {
    os.store.put(Service, 'etcd', { running: true, healthy, unknown: false })
    await os.settled()
  }
  /** etcd runs for this long with the settings it was started with. */
  const settle = async () => {
    start()
    await answer()
    await pass(settleTime)
  }
  const apply = async (text: string) => {
    os.store.put(MachineConfig, 'v1alpha1', text)
    await os.settled()
  }
  const fail = async (error: string) => {
    starts.failed(os.store.get(EtcdStart, 'etcd')!.spec.settings, error)
    await os.settled()
  }
  const level = () => os.store.get(EtcdSpec, 'etcd')?.spec.extraArgs['log-level']?.values[0]
  const fallback = () => os.store.get(ComponentFallback, 'etcd')?.spec
  return { ...os, start, pass, answer, settle, apply, fail, level, fallback, settings, restarts, pulls, others }
}

const health = (lastMessage: string) => ({ unknown: false, healthy: false, lastMessage, lastChange: new Date(0) })

describe('settings of etcd', () => {
  test('that keep it from starting are replaced by those it ran with, and the running one is left alone before', async () => {
    const files = memoryFiles()
    const os = await played({ files })
    await os.settle()
    expect(JSON.parse(files.contents.get(memoryPath)!).components.etcd).toEqual({
      good: { digest: os.settings(), section: { extraArgs: { 'log-level': 'info' } } },
    })

    await os.apply(broken)
    expect([os.level(), os.restarts]).toEqual(['nonsense', []])
    expect(os.store.get(ComponentTrial, 'etcd')?.spec).toMatchObject({ started: false, changed: ['cluster.etcd.extraArgs.log-level'] })

    os.start()
    await os.settled()
    expect(os.store.get(ComponentTrial, 'etcd')?.spec.started).toBe(true)
    await os.fail('unrecognized level: "nonsense"')
    expect(os.level()).toBe('nonsense')
    await os.fail('unrecognized level: "nonsense"')
    expect(os.level()).toBe('info')
    expect(os.restarts).toEqual([os.settings()])
    expect(os.fallback()).toMatchObject({ changed: ['cluster.etcd.extraArgs.log-level'], error: 'unrecognized level: "nonsense"' })
    expect(os.store.get(Diagnostic, 'etcd-settings')?.spec.details[0]).toBe('unrecognized level: "nonsense"')
    await os.answer()
    expect(os.store.get(EtcdStart, 'etcd')?.spec).toMatchObject({ settings: os.settings(), failures: 0 })

    // A restart of the machine finds the same; another configuration ends it.
    const after = await played({ files, config: broken })
    expect(after.level()).toBe('info')
    await after.apply(working)
    expect([after.fallback(), after.store.get(Diagnostic, 'etcd-settings')]).toEqual([undefined, undefined])
  })

  test('are good while it runs, also when others wait for the next start', async () => {
    const os = await played()
    os.start()
    await os.answer()
    await os.apply(broken)
    await os.pass(settleTime)
    os.start()
    await os.fail('x')
    await os.fail('x')
    expect(os.level()).toBe('info')
  })

  test('are rejected when it does not answer in time, but not while it waits for the other members', async () => {
    const os = await played({ sufficient: false })
    await os.settle()
    await os.apply(broken)
    os.start()
    await os.answer(false)
    await os.pass(startLimit)
    expect(os.fallback()).toBeUndefined()
    os.others.sufficient = true
    await os.pass(startLimit)
    expect(os.fallback()?.error).toBe('it did not answer within 120 s: no leader')
    expect(os.restarts).toEqual([os.settings()])
  })

  test('with an image that cannot be pulled fail before the running etcd is stopped', async () => {
    const os = await played({ pullError: 'no such host' })
    await os.settle()
    await os.apply(noImage)
    expect(os.pulls).toEqual(['registry.invalid/etcd:v3.6.16'])
    const { spec } = await os.store.until(ComponentStatus, 'etcd', ({ spec }) => !spec.ready)
    expect(spec).toEqual({
      settings: os.settings(),
      ready: false,
      failures: 1,
      error: 'image "registry.invalid/etcd:v3.6.16" cannot be pulled: no such host',
    })
    expect([os.restarts, os.store.get(EtcdStart, 'etcd')?.spec.stage]).toEqual([[], 'running'])
  })

  test('that leave no address are rejected, and etcd has its addresses all the time', async () => {
    const os = await played()
    await os.settle()
    await os.apply(noAddress)
    expect(os.store.get(EtcdSpec, 'etcd')?.spec.advertisedAddresses).toEqual(['10.5.0.2'])
    await os.pass(startLimit)
    expect(os.fallback()?.error).toContain('lies in cluster.etcd.advertisedSubnets (172.16.0.0/12)')
    expect(os.restarts).toEqual([])
  })

  test('are replaced at once by newer ones where etcd never answered with them', async () => {
    const os = await played({ config: broken })
    os.start()
    await os.apply(working)
    expect([os.level(), os.restarts]).toEqual(['info', [os.settings()]])
  })

  test('do not include its authority, which is rotated and not tried', async () => {
    const os = await played()
    const before = os.settings()
    await os.apply(working.replace('Y3J0', 'bmV3'))
    expect(os.settings()).toBe(before)
  })
})

describe('a start is counted as failed', () => {
  const runContext = (signal = new AbortController().signal) => ({ signal, output: new LogRing() }) as unknown as RunContext
  const starting = () => {
    const store = new Store()
    const starts = new EtcdStarts({ store, log: silent })
    starts.begin({ settings: 'a', image: 'i' })
    return { starts, seen: () => store.get(EtcdStart, 'etcd')!.spec, store }
  }

  test('when the process exits by itself, with the output of this run and not of an earlier one', async () => {
    const { starts, seen, store } = starting()
    const own = runContext()
    own.output.line('{"level":"fatal","msg":"discovery failed","error":"of another run"}')
    const exit = Promise.withResolvers<{ ok: boolean; message: string }>()
    const run = { description: '', exit: exit.promise, kill: () => {} } as Run
    await starts.counted(
      async () => run,
      () => 'a',
    )(own)
    expect(seen().stage).toBe('running')
    own.output.line('{"level":"warn","msg":"failed to verify flags","error":"unknown auto-compaction-mode"}')
    exit.resolve({ ok: false, message: 'exited with code 1' })
    await store.until(EtcdStart, 'etcd', ({ spec }) => spec.failures === 1)
    expect(seen().error).toBe('failed to verify flags: unknown auto-compaction-mode')
  })

  test('when none can be started, unless containerd is away', async () => {
    const { starts, seen } = starting()
    const runs = (error: Error) =>
      starts.counted(
        () => Promise.reject(error),
        () => 'a',
      )(runContext())
    await expect(runs(new Error('no such file "/usr/local/bin/etcd"'))).rejects.toThrow()
    await expect(runs(new RpcError('Unavailable', 'containerd is away'))).rejects.toThrow()
    expect(seen()).toMatchObject({ failures: 1, error: 'no such file "/usr/local/bin/etcd"' })
  })

  test('once for its own settings', async () => {
    const { starts, seen } = starting()
    starts.failed('a', 'x')
    starts.begin({ settings: 'a', image: 'i' })
    expect(seen().failures).toBe(1)
    starts.begin({ settings: 'b', image: 'i' })
    starts.failed('a', 'late')
    expect(seen()).toMatchObject({ failures: 0, error: '' })
  })
})

test('the other members may wait for this one only', () => {
  const member = (address: string, answers: boolean) => ({ name: address, address, answers })
  const view = (...answers: boolean[]) => ({
    leader: false,
    members: [member('10.5.0.2', false), ...answers.map((one, at) => member(`10.5.0.${at + 3}`, one))],
  })
  expect(sufficientWithout(view(true), ['10.5.0.2'])).toBe(true)
  expect(sufficientWithout(view(false), ['10.5.0.2'])).toBe(false)
  expect(sufficientWithout(view(true, false), ['10.5.0.2'])).toBe(true)
  expect(sufficientWithout(view(false, false), ['10.5.0.2'])).toBe(false)
})

test('members are named by their addresses where none of them answers, this one included', async () => {
  const { store } = machineWith([])
  const ca = newCA({ subject: { organizations: ['etcd'] }, kind: 'ecdsa' })
  const pair = { crt: btoa(ca.crt), key: btoa(ca.key) }
  store.put(EtcdRootSecret, 'etcd', { etcdCA: pair })
  store.put(EtcdSecret, 'etcd', { etcd: pair, etcdPeer: pair, etcdAdmin: pair, etcdAPIServer: pair })
  store.put(EtcdSpec, 'etcd', {
    name: 'cp-1',
    advertisedAddresses: ['10.5.0.2'],
    listenPeerAddresses: [],
    listenClientAddresses: [],
    image: 'etcd',
    extraArgs: {},
  })
  await expect(viewEtcd(store)).rejects.toThrow()
  store.put(Endpoint, 'discovery', { addresses: ['127.0.0.77', '127.0.0.78'], hosts: [] })
  const view = await viewEtcd(store)
  expect(view.members.map(({ address, answers }) => [address, answers])).toEqual([
    ['10.5.0.2', false],
    ['127.0.0.77', false],
    ['127.0.0.78', false],
  ])
  expect(etcdTrouble(view)[0]?.sentence).toContain('0 of 3 answer, and a leader needs 2: bring back cp-1 (10.5.0.2), ')
})

test('a node without certificates of etcd cannot query its members, which does not throw', async () => {
  const store = { get: () => undefined, list: () => [] }
  await expect(viewEtcd(store)).rejects.toThrow('the certificates of etcd are not there yet')
})
