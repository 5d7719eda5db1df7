import { describe, expect, test } from 'bun:test'
import { makeClock } from '../../../../src/cosi/clock.ts'
import { MachineConfig } from '../../../../src/os/config/resources/machine-config.ts'
import { memoryPath } from '../../../../src/os/k8s/component/memory.ts'
import { podRun } from '../../../../src/os/k8s/component/pod-run.ts'
import { changedPaths, digestOf, settingsAnnotation } from '../../../../src/os/k8s/component/settings.ts'
import { judge, settleTime, type TrialState } from '../../../../src/os/k8s/component/trial.ts'
import { tryComponentSettings } from '../../../../src/os/k8s/controllers/component-trial.ts'
import { configApiServer } from '../../../../src/os/k8s/controllers/control-plane/api-server-config.ts'
import { configAuditPolicy } from '../../../../src/os/k8s/controllers/control-plane/audit-policy-config.ts'
import { configNodeTaints } from '../../../../src/os/k8s/controllers/node/node-specs.ts'
import { APIServerConfig } from '../../../../src/os/k8s/resources/api-server-config.ts'
import { AuditPolicyConfig } from '../../../../src/os/k8s/resources/audit-policy-config.ts'
import { ComponentFallback, ComponentStatus, ComponentTrial } from '../../../../src/os/k8s/resources/component.ts'
import { NodeTaintSpec } from '../../../../src/os/k8s/resources/node.ts'
import { Diagnostic } from '../../../../src/os/runtime/resources/diagnostic.ts'
import { Service } from '../../../../src/os/runtime/resources/service.ts'
import { controlPlane, machineWith, memoryFiles, worker } from '../machine.ts'

const good = { digest: 'good', section: { extraArgs: { v: '2' } } }
const bad = { digest: 'bad', section: { extraArgs: { v: '2', wrong: 'x' } } }
const now = new Date('2026-01-02T03:04:05Z')

function seen(settings: string, { ready = false, failures = 0, readyFor = 0, judged = true, error = '' } = {}) {
  return { status: { settings, ready, failures, error }, readyFor, judged, now }
}

describe('settings of a component', () => {
  test('are good once it ran with them for a while', () => {
    expect(judge({}, good, seen('good', { ready: true, readyFor: settleTime - 1 }))).toEqual({})
    expect(judge({}, good, seen('good', { ready: true, readyFor: settleTime }))).toEqual({ good })
  })

  test('are rejected after two failures, when there are good ones to go back to', () => {
    const once = judge({ good }, bad, seen('bad', { failures: 1 }))
    expect(once).toEqual({ good })
    const state = judge({ good }, bad, seen('bad', { failures: 2, error: 'unknown flag: --wrong' }))
    expect(state.rejected).toEqual({ ...bad, error: 'unknown flag: --wrong', since: now.toISOString() })
    expect(judge({}, bad, seen('bad', { failures: 9 }))).toEqual({})
  })

  test('are not judged by the component that runs with others, nor while etcd is away', () => {
    const state: TrialState = { good }
    expect(judge(state, bad, seen('good', { failures: 9 }))).toBe(state)
    expect(judge(state, bad, seen('bad', { failures: 9, judged: false }))).toBe(state)
  })

  test('that were rejected stay so until the configuration changes', () => {
    const state = judge({ good }, bad, seen('bad', { failures: 2 }))
    expect(judge(state, bad, seen('good', { ready: true, readyFor: settleTime }))).toBe(state)
    expect(judge(state, good, seen('good', { ready: true }))).toEqual({ good })
    const third = { digest: 'third', section: {} }
    expect(judge(state, third, seen('third', { ready: true, readyFor: settleTime }))).toEqual({ good: third })
  })

  test('mean the same in any order, and their differences are named as an operator writes them', () => {
    expect(digestOf({ a: 1, b: { c: 2, d: 3 } })).toBe(digestOf({ b: { d: 3, c: 2 }, a: 1 }))
    expect(
      changedPaths('kube-apiserver', { extraArgs: { v: '2' }, image: 'a' }, { extraArgs: { v: '2', wrong: 'x' }, image: 'b' }),
    ).toEqual(['cluster.apiServer.extraArgs.wrong', 'cluster.apiServer.image'])
    expect(changedPaths('etcd', {}, { extraArgs: { 'heartbeat-interval': '1', quota: ['1'] } })).toEqual([
      'cluster.etcd.extraArgs.heartbeat-interval',
      'cluster.etcd.extraArgs.quota',
    ])
    expect(changedPaths('kubelet', undefined, { extraConfig: { evictionHard: { 'memory.available': '9Gi' } } })).toEqual([
      'machine.kubelet.extraConfig.evictionHard["memory.available"]',
    ])
    expect(changedPaths('kubelet', { nodeTaints: { a: 'NoExecute' } }, { image: 'a', nodeTaints: { b: 'NoExecute' } })).toEqual([
      'machine.kubelet.image',
      'machine.nodeTaints.a',
      'machine.nodeTaints.b',
    ])
    const plugin = (name: string) => ({ admissionControl: [{ name, configuration: {} }] })
    expect(changedPaths('kube-apiserver', plugin('a'), plugin('b'))).toEqual(['cluster.apiServer.admissionControl'])
  })
})

describe('how a pod runs is read from its status:', () => {
  test('a container that ends again and again, with the reason it gave', () => {
    const run = podRun({
      containerStatuses: [
        {
          restartCount: 1,
          state: { waiting: { reason: 'CrashLoopBackOff', message: 'back-off 10s' } },
          lastState: { terminated: { exitCode: 1, reason: 'Error', message: 'Usage: …\nError: unknown flag: --wrong\n' } },
        },
      ],
    })
    expect(run).toMatchObject({ ready: false, failures: 2, error: 'Error: unknown flag: --wrong' })
  })

  test('an image that cannot be pulled', () => {
    const waiting = (reason: string) =>
      podRun({ containerStatuses: [{ restartCount: 0, state: { waiting: { reason, message: 'not found' } } }] })
    expect(waiting('ErrImagePull')).toMatchObject({ ready: false, failures: 1, error: 'not found' })
    expect(waiting('ImagePullBackOff').failures).toBe(2)
    expect(waiting('ContainerCreating').failures).toBe(0)
  })

  test('each container with what keeps it from running, init containers first', () => {
    const { containers, failures, error } = podRun({
      initContainerStatuses: [{ name: 'copy', ready: true, state: { terminated: { exitCode: 0, reason: 'Completed' } } }],
      containerStatuses: [
        { name: 'a', restartCount: 2, state: { waiting: { reason: 'CrashLoopBackOff' } }, lastState: { terminated: { exitCode: 7 } } },
        { name: 'b', state: { waiting: { reason: 'CreateContainerError', message: 'no such mount' } } },
        { name: 'c', ready: true, state: { running: {} } },
      ],
    })
    expect(containers.map(({ name, ready, problem }) => [name, ready, problem])).toEqual([
      ['copy', true, { kind: 'ended', exitCode: 0 }],
      ['a', false, { kind: 'ended', exitCode: 7 }],
      ['b', false, { kind: 'not-started', reason: 'CreateContainerError' }],
      ['c', true, undefined],
    ])
    expect({ failures, error }).toEqual({ failures: 4, error: 'exit code 7' })
  })
})

describe('a control plane', () => {
  const working = controlPlane('', 'apiServer:\n  extraArgs: {v: "2"}\n  auditPolicy: {rules: [{level: None}]}')
  const broken = controlPlane('', 'apiServer:\n  extraArgs: {v: "2", wrong: x}\n  auditPolicy: {rules: [{level: Nonsense}]}')

  async function tried(files = memoryFiles(), config = working) {
    let time = 0
    const os = machineWith(
      [tryComponentSettings({ kernel: { mode: 'container', files } }), configApiServer, configAuditPolicy],
      config,
      makeClock({ elapsed: () => time }),
    )
    os.store.put(Service, 'etcd', { running: true, healthy: true, unknown: false })
    const settings = () => os.store.get(APIServerConfig, 'kube-apiserver')?.metadata.annotations[settingsAnnotation] ?? ''
    const observe = async (spec: { ready: boolean; failures: number; error?: string }) => {
      os.store.put(ComponentStatus, 'kube-apiserver', { error: '', ...spec, settings: settings() })
      await os.settled()
    }
    const flags = () => Object.keys(os.store.get(APIServerConfig, 'kube-apiserver')?.spec.extraArgs ?? {})
    const pass = (milliseconds: number) => {
      time += milliseconds
    }
    await os.settled()
    return { ...os, observe, flags, settings, pass }
  }

  test('goes back to the flags and files that worked, and names the rejected setting', async () => {
    const files = memoryFiles()
    const os = await tried(files)
    await os.observe({ ready: true, failures: 0 })
    os.pass(settleTime)
    await os.observe({ ready: true, failures: 0, error: 'wake' })
    expect(files.contents.has(memoryPath)).toBe(true)

    os.store.put(MachineConfig, 'v1alpha1', broken)
    await os.settled()
    expect(os.flags()).toEqual(['v', 'wrong'])
    await os.observe({ ready: false, failures: 2, error: 'unknown flag: --wrong' })
    expect(os.flags()).toEqual(['v'])
    expect(os.store.get(AuditPolicyConfig, 'audit-policy')?.spec.config).toEqual({ rules: [{ level: 'None' }] })
    expect(os.store.get(ComponentFallback, 'kube-apiserver')?.spec).toMatchObject({
      changed: ['cluster.apiServer.extraArgs.wrong', 'cluster.apiServer.auditPolicy.rules'],
      error: 'unknown flag: --wrong',
    })
    expect(os.store.get(Diagnostic, 'kube-apiserver-settings')?.spec.details[0]).toBe('unknown flag: --wrong')

    // A restart of the machine finds the same: what was rejected is not tried again.
    const after = await tried(files, broken)
    expect(after.flags()).toEqual(['v'])

    after.store.put(MachineConfig, 'v1alpha1', working)
    await after.settled()
    expect(after.store.get(ComponentFallback, 'kube-apiserver')).toBeUndefined()
    expect(after.store.get(Diagnostic, 'kube-apiserver-settings')).toBeUndefined()
  })

  test('leaves the settings of a disabled component alone', async () => {
    const scheduler = (text: string, disabled: boolean) =>
      controlPlane(`controlPlane:\n  scheduler: {disabled: ${disabled}}`, `scheduler:\n  extraArgs: {v: "${text}"}`)
    const os = await tried(memoryFiles(), scheduler('1', false))
    const run = { ready: true, failures: 0, error: '', settings: digestOf({ extraArgs: { v: '1' } }) }
    os.store.put(ComponentStatus, 'kube-scheduler', run)
    await os.settled()
    os.pass(settleTime)
    os.store.put(ComponentStatus, 'kube-scheduler', { ...run, error: 'wake' })
    await os.settled()
    os.store.put(MachineConfig, 'v1alpha1', scheduler('2', false))
    await os.settled()
    expect(os.store.get(ComponentTrial, 'kube-scheduler')).toBeDefined()
    os.store.put(MachineConfig, 'v1alpha1', scheduler('2', true))
    await os.settled()
    expect(os.store.get(ComponentTrial, 'kube-scheduler')).toBeUndefined()
  })

  test('remembers nothing of a damaged file', async () => {
    const files = memoryFiles()
    files.contents.set(memoryPath, '{"components":{"kube-apiserver":5}}')
    expect((await tried(files, broken)).flags()).toEqual(['v', 'wrong'])
  })
})

test('a kubelet that does not start with new taints keeps its previous ones, although its own section is the same', async () => {
  let time = 0
  const config = (taint: string) => worker(`kubelet: {extraArgs: {v: "2"}}\nnodeTaints: {${taint}}`)
  const clock = makeClock({ elapsed: () => time })
  const trials = tryComponentSettings({ kernel: { mode: 'container', files: memoryFiles() } })
  const os = machineWith([trials, configNodeTaints], config('gpu: "yes:NoSchedule"'), clock)
  const settings = (taint: Record<string, string>) => digestOf({ extraArgs: { v: '2' }, nodeTaints: taint })
  const observe = async (spec: { settings: string; ready: boolean; failures: number; error?: string }) => {
    os.store.put(ComponentStatus, 'kubelet', { error: '', ...spec })
    await os.settled()
  }
  const taints = () => os.store.list(NodeTaintSpec).map(({ spec }) => spec.key)
  const good = { settings: settings({ gpu: 'yes:NoSchedule' }), ready: true, failures: 0 }
  await observe(good)
  time += settleTime
  await observe({ ...good, error: 'wake' })
  os.store.put(MachineConfig, 'v1alpha1', config('other: NoExecute'))
  await os.settled()
  expect(taints()).toEqual(['other'])
  await observe({ settings: settings({ other: 'NoExecute' }), ready: false, failures: 2, error: 'invalid taint' })
  expect(taints()).toEqual(['gpu'])
  expect(os.store.get(ComponentFallback, 'kubelet')?.spec).toMatchObject({
    changed: ['machine.nodeTaints.gpu', 'machine.nodeTaints.other'],
    error: 'invalid taint',
  })
  os.store.put(MachineConfig, 'v1alpha1', config('third: NoExecute'))
  await os.settled()
  expect(taints()).toEqual(['third'])
})
