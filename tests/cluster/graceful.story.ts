/**
 * Pods and their node: access to the machine API, filters of system calls, credentials for registries, user namespaces and folders
 * of the host, and how pods end when the node restarts: the kubelet ends them, with hooks, grace periods and by priority, before
 * anything else stops.
 */

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { copyFileSync, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { buildClient } from '../interop/client.ts'
import { answerAsRegistry, buildGuest, type GuestImage, guestImage } from '../interop/guest.ts'
import { eventually, succeeded, TestCluster } from './cluster.ts'

const cluster = new TestCluster('graceful')
const worker = 'graceful-worker-1'
const [gateway, first, second] = ['10.64.0.1', '10.64.0.2', '10.64.0.3']
let images: Record<string, GuestImage> = {}
let registry: ReturnType<typeof Bun.serve>

const denied = { names: ['mkdir', 'mkdirat'], action: 'SCMP_ACT_ERRNO' }
const noFolders = { name: 'no-folders.json', value: { defaultAction: 'SCMP_ACT_ALLOW', syscalls: [denied] } }
const kubernetesTalosAPIAccess = { enabled: true, allowedRoles: ['os:reader'], allowedKubernetesNamespaces: ['tools'] }
const kubelet = (extraConfig: object) => JSON.stringify({ machine: { kubelet: { extraConfig } } })

beforeAll(async () => {
  buildGuest(join(cluster.home, 'guest'))
  images = {
    guest: guestImage(join(cluster.home, 'guest')),
    stopped: guestImage(join(cluster.home, 'guest'), { StopSignal: 'SIGUSR1' }),
    client: guestImage(await buildClient()),
  }
  registry = Bun.serve({
    port: 0,
    hostname: '0.0.0.0',
    fetch(request) {
      const { authorization } = request.headers.toJSON()
      if (new URL(request.url).searchParams.get('ns') !== 'private.test' || authorization === `Basic ${btoa('somebody:something')}`)
        return answerAsRegistry(images, request)
      return new Response('who are you', { status: 401, headers: { 'www-authenticate': 'Basic realm="private"' } })
    },
  })
  await cluster.create(
    ...['--cidr', '10.64.0.0/24'],
    ...['guests', 'private'].flatMap((name) => ['--registry-mirror', `${name}.test=http://${gateway}:${registry.port}`]),
    ...['--config-patch-worker', JSON.stringify({ machine: { seccompProfiles: [noFolders] } })],
    ...[
      '--config-patch-worker',
      kubelet({ shutdownGracePeriod: '16s', shutdownGracePeriodCriticalPods: '6s', volumeStatsAggPeriod: '10s' }),
    ],
    ...['--config-patch-control-plane', kubelet({ shutdownGracePeriodByPodPriority: [{ priority: 0, shutdownGracePeriodSeconds: 20 }] })],
    ...['--config-patch-control-plane', JSON.stringify({ machine: { features: { kubernetesTalosAPIAccess } } })],
  )
})
afterAll(async () => {
  await cluster.destroy()
  cluster.close()
  await registry.stop(true)
})

const on = async (node: string, ...args: string[]) => succeeded(await cluster.talosctl('--nodes', node, ...args)).stdout

test.each([first, second])('the kubelet of %s has taken the lock that delays a shutdown', async (node) => {
  const lines = (await on(node, 'logs', 'machined')).split('\n').filter((line) => line.includes('shutdown lock taken'))
  expect(lines).toEqual([expect.stringContaining('by=kubelet')])
})

describe('the machine API', () => {
  /** What `talosctl inject serviceaccount` makes of a pod that calls the API with the field's client. */
  const injected = async (namespace: string, roles: string) => {
    const file = join(cluster.home, `${namespace}.yaml`)
    const args = ['-talosconfig', '/var/run/secrets/talos.dev/config', 'version']
    const container = { name: 'client', image: 'guests.test/client:1', args }
    const spec = { restartPolicy: 'Never', containers: [container] }
    writeFileSync(file, JSON.stringify({ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'caller', namespace }, spec }))
    succeeded(await cluster.kubectl(['create', 'namespace', namespace]))
    const { stdout } = succeeded(await cluster.talosctl('inject', 'serviceaccount', '--roles', roles, '--file', file))
    succeeded(await cluster.kubectl(['apply', '-f', '-'], stdout))
  }
  const fieldOf = async (namespace: string, kind: string, path: string) =>
    succeeded(await cluster.kubectl(['get', kind, '--namespace', namespace, '--output', `jsonpath={${path}}`])).stdout
  const secret = 'secret/caller-talos-secrets'

  test('answers a pod of a namespace that may call it, with the roles of its certificate', async () => {
    await injected('tools', 'os:reader')
    await eventually(async () => {
      if ((await fieldOf('tools', 'pod/caller', '.status.phase')) !== 'Succeeded')
        throw new Error(succeeded(await cluster.kubectl(['describe', '--namespace', 'tools', 'pod,tsa', 'caller'])).stdout)
    })
    expect(succeeded(await cluster.kubectl(['logs', '--namespace', 'tools', 'caller'])).stdout).toContain('v1.13.')
    expect(await fieldOf('tools', 'events', '.items[?(@.source.component=="talos-sa-controller")].reason')).toBe('Synced')
    const config = join(cluster.home, 'of-the-pod')
    writeFileSync(config, Buffer.from(await fieldOf('tools', secret, '.data.config'), 'base64'), { mode: 0o600 })
    const { code, stderr } = await cluster.talosctl('--talosconfig', config, '--endpoints', first, '--nodes', first, 'reboot')
    expect([code, stderr]).toEqual([1, expect.stringContaining('PermissionDenied')])
  })

  test('is reached by a service that leads to the control plane', async () => {
    expect(await fieldOf('default', 'endpointslice/talos-ipv4', '.endpoints[*].addresses')).toBe(JSON.stringify([first]))
    expect(await fieldOf('default', 'service/talos', '.spec.ports[*].port')).toBe('50000')
  })

  test.each([
    ['elsewhere', 'os:reader', 'ErrNamespaceNotAllowed'],
    ['tools', 'os:admin', 'ErrRolesNotAllowed'],
  ])('stays closed to a pod in %s with %s', async (namespace, roles, reason) => {
    const account = {
      apiVersion: 'talos.dev/v1alpha1',
      kind: 'ServiceAccount',
      metadata: { name: 'closed', namespace },
      spec: { roles: [roles] },
    }
    await cluster.kubectl(['create', 'namespace', namespace])
    succeeded(await cluster.kubectl(['apply', '-f', '-'], JSON.stringify(account)))
    await eventually(async () => {
      expect(await fieldOf(namespace, 'tsa/closed', '.status.failureReason')).toStartWith(`${reason}: `)
    }, 20)
    expect(await fieldOf(namespace, 'events', '.items[?(@.involvedObject.name=="closed")].reason')).toBe(reason)
    expect(await fieldOf(namespace, 'secrets', '.items[*].metadata.name')).not.toContain('closed')
  })
})

describe('pods', () => {
  const phaseOf = async (name: string) =>
    (await cluster.objects('get', 'pods', '--field-selector', `metadata.name=${name}`)).items[0]?.status.phase
  const apply = async (...pods: object[]) =>
    succeeded(await cluster.kubectl(['apply', '-f', '-'], pods.map((one) => JSON.stringify(one)).join('\n---\n')))
  const succeeds = (name: string) =>
    eventually(async () => {
      if ((await phaseOf(name)) !== 'Succeeded') throw new Error(succeeded(await cluster.kubectl(['describe', 'pod', name])).stdout)
    }, 60)

  beforeAll(async () => {
    succeeded(await cluster.kubectl(['label', 'namespace', 'default', 'pod-security.kubernetes.io/enforce=privileged']))
  })

  beforeAll(async () => {
    const limits = { 'ephemeral-storage': '1Mi' }
    await apply(
      pod('greedy', 0, { args: ['fill', '/words/file', '8'], resources: { limits } }, { volumes: [{ name: 'words', emptyDir: {} }] }),
    )
  })

  test('are denied the system calls of a profile of the configuration', async () => {
    const seccompProfile = { type: 'Localhost', localhostProfile: `profiles/${noFolders.name}` }
    const making = (name: string, securityContext: object) =>
      pod(name, 0, { args: ['make', '/folder'], volumeMounts: [], securityContext }, { volumes: [], restartPolicy: 'Never' })
    await apply(making('filtered', { seccompProfile }), making('unfiltered', {}))
    await succeeds('unfiltered')
    await eventually(async () => expect(await phaseOf('filtered')).toBe('Failed'), 30)
    expect(succeeded(await cluster.kubectl(['logs', 'filtered'])).stdout).toBe('mkdir /folder: operation not permitted\n')
  })

  test('have images from a registry that requires credentials; the kubelet sees a folder with other owners', async () => {
    const [programs, owned] = ['/var/programs', '/var/owned'].map((path) => join(`/proc/${cluster.initOf(worker)}/root`, path))
    for (const folder of [programs, owned]) mkdirSync(folder ?? '')
    copyFileSync(join(cluster.home, 'guest'), join(programs ?? '', 'guest'))
    writeFileSync(join(owned ?? '', 'file'), 'words')
    const bind = (source: string, destination: string, more: object) => ({ type: 'bind', source, destination, ...more })
    const ids = [{ containerID: 0, hostID: 4242, size: 1 }]
    const extraMounts = [
      bind('/var/programs', '/usr/local/lib/kubelet/credentialproviders', { options: ['bind', 'ro'] }),
      bind('/var/owned', '/owned', { options: ['bind', 'ro'], uidMappings: ids, gidMappings: ids }),
    ]
    const provider = {
      ...{ name: 'guest', args: ['credentials'], matchImages: ['private.test'], defaultCacheDuration: '1m' },
      apiVersion: 'credentialprovider.kubelet.k8s.io/v1',
      env: Object.entries({ REGISTRY_USER: 'somebody', REGISTRY_PASSWORD: 'something' }).map(([name, value]) => ({ name, value })),
    }
    const before = cluster.processIn(worker, '/usr/local/bin/kubelet')
    const credentialProviderConfig = { providers: [provider] }
    const nodeTaints = { late: 'yes:PreferNoSchedule' }
    await on(second, 'patch', 'mc', '-p', JSON.stringify({ machine: { kubelet: { extraMounts, credentialProviderConfig }, nodeTaints } }))
    const kubeletProcess = await eventually(async () => {
      const found = cluster.processIn(worker, '/usr/local/bin/kubelet')
      expect([undefined, before]).not.toContain(found)
      return found
    }, 60)
    const { uid, gid } = statSync(`/proc/${kubeletProcess}/root/owned/file`)
    expect([uid, gid]).toEqual([4242, 4242])
    expect(statSync(join(owned ?? '', 'file')).uid).toBe(0)
    const config = `/proc/${cluster.initOf(worker)}/root/etc/kubernetes/kubelet-credentialproviderconfig.yaml`
    expect(statSync(config).mode & 0o777).toBe(0o600)
    await apply(
      pod('private', 0, { image: 'private.test/guest:1', args: ['list', '/'], volumeMounts: [] }, { volumes: [], restartPolicy: 'Never' }),
    )
    await succeeds('private')
  })

  test('find the taints with which a worker registered: it may not change them, which it reports', async () => {
    await eventually(async () => {
      expect(await on(second, 'logs', 'controller-runtime')).toMatch(
        /a worker may not change its taints.* taints="?late=yes:PreferNoSchedule/,
      )
    }, 20)
    expect(succeeded(await cluster.kubectl(['get', 'node', worker, '-o', 'jsonpath={.spec.taints}'])).stdout).toBe('')
  })

  test('run in a user namespace, where root is nobody on the node', async () => {
    await apply(pod('apart', 0, { args: ['wait'], volumeMounts: [] }, { hostUsers: false, volumes: [] }))
    const map = await eventually(async () => {
      const pid = cluster.processIn(worker, '/guest wait')
      if (pid === undefined) throw new Error(succeeded(await cluster.kubectl(['describe', 'pod', 'apart'])).stdout)
      return readFileSync(`/proc/${pid}/uid_map`, 'utf8').trim().split(/ +/).map(Number)
    }, 60)
    expect(map[0]).toBe(0)
    expect(map[1]).toBeGreaterThanOrEqual(65_536)
    succeeded(await cluster.kubectl(['delete', 'pod', 'apart', '--grace-period', '0', '--force']))
  })

  test('see a folder of the node whose type is checked', async () => {
    const volumes = [{ name: 'words', hostPath: { path: '/var/log/audit', type: 'Directory' } }]
    await apply(pod('typed', 0, { args: ['list', '/words'] }, { volumes, restartPolicy: 'Never' }))
    await succeeds('typed')
    expect(succeeded(await cluster.kubectl(['logs', 'typed'])).stdout).toContain('kube')
  })

  test('are evicted when they have written more than they may', async () => {
    await eventually(async () => expect(await phaseOf('greedy')).toBe('Failed'), 60)
    const { stdout } = succeeded(await cluster.kubectl(['get', 'pod', 'greedy', '-o', 'jsonpath={.status.reason}: {.status.message}']))
    expect(stdout).toMatch(/^Evicted: .*ephemeral.* exceeds/)
  })

  test('write through a subPath to the node, where others find it', async () => {
    const volumes = [{ name: 'words', hostPath: { path: '/tmp' } }]
    const container = {
      args: ['append', '/words/file', 'word', '0'],
      volumeMounts: [{ name: 'words', mountPath: '/words', subPath: 'below' }],
    }
    await apply(pod('writer', 0, container, { volumes, restartPolicy: 'Never' }))
    await succeeds('writer')
    expect(readFileSync(`/proc/${cluster.initOf(worker)}/root/tmp/below/file`, 'utf8')).toContain('word ended')
  })
})

test('a scheduler that the configuration disables is gone, and the cluster is healthy without it', async () => {
  const disable = async (disabled: boolean) =>
    on(first, 'patch', 'mc', '-p', JSON.stringify({ machine: { controlPlane: { scheduler: { disabled } } } }))
  const schedulers = async () => (await cluster.objects('get', 'pods', '-n', 'kube-system', '-l', 'component=kube-scheduler')).items.length
  await disable(true)
  await eventually(async () => expect(await schedulers()).toBe(0), 60)
  expect(await on(first, 'get', 'schedulerconfig', '-o', 'jsonpath={.spec.enabled}')).toContain('false')
  expect(existsSync(`/proc/${cluster.initOf('graceful-controlplane-1')}/root/system/secrets/kubernetes/kube-scheduler/kubeconfig`)).toBe(
    true,
  )
  await on(first, 'health', '--wait-timeout', '1m')
  expect((await cluster.talosctl('--nodes', first, 'explain', 'staticpods', 'kube-scheduler')).stdout).toContain(
    'machine.controlPlane.scheduler.disabled is set',
  )
  await disable(false)
  await eventually(async () => expect(await schedulers()).toBe(1), 60)
})

test('a drain names the pod that stays and the budget that keeps it, and leaves the node in use', async () => {
  const labels = { app: 'kept' }
  const { spec } = pod('kept', 0, { args: ['wait'], volumeMounts: [] }, { volumes: [], tolerations: [{ operator: 'Exists' }] })
  const deployment = { replicas: 1, selector: { matchLabels: labels }, template: { metadata: { labels }, spec } }
  const objects = [
    { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'kept' }, spec: deployment },
    {
      apiVersion: 'policy/v1',
      kind: 'PodDisruptionBudget',
      metadata: { name: 'always' },
      spec: { minAvailable: 1, selector: { matchLabels: labels } },
    },
  ]
  succeeded(await cluster.kubectl(['apply', '-f', '-'], objects.map((one) => JSON.stringify(one)).join('\n---\n')))
  succeeded(await cluster.kubectl(['rollout', 'status', 'deployment/kept', '--timeout', '60s']))
  const { code, stderr } = await cluster.talosctl('--nodes', second, 'reboot', '--drain', '--drain-timeout', '3s')
  expect(code).toBe(1)
  expect(stderr).toMatch(/default\/kept-\S+: The disruption budget always needs 1 healthy pods/)
  const { items } = await cluster.objects('get', 'nodes')
  expect(items.map(({ spec }) => (spec as { unschedulable?: boolean }).unschedulable ?? false)).toEqual([false, false])
  succeeded(await cluster.kubectl(['delete', 'deployment,poddisruptionbudget', '--all', '--grace-period', '1']))
})

test('cluster DNS does not stay on the node that was there first', async () => {
  await eventually(async () => {
    const { items } = await cluster.objects('get', 'pods', '--namespace', 'kube-system', '--selector', 'k8s-app=kube-dns')
    expect(items.map(({ spec }) => spec.nodeName).sort()).toEqual(['graceful-controlplane-1', worker])
  }, 60)
})

test('a reboot lets pods speak their last words: hook, grace period, stop signal, and critical ones last', async () => {
  succeeded(await cluster.kubectl(['apply', '-f', '-'], [slow, critical, ownSignal].map((pod) => JSON.stringify(pod)).join('\n---\n')))
  await eventually(async () => {
    for (const name of ['slow', 'critical', 'own-signal']) expect(wordsOf(name).map(({ text }) => text)).toEqual(['started'])
  })
  succeeded(await cluster.talosctl('--nodes', second, 'reboot', '--timeout', '2m'))

  const words = wordsOf('slow')
  expect(words.map(({ text }) => text)).toEqual(['started', 'hook began', 'hook ended', 'got terminated', 'done'])
  expect(wordsOf('own-signal').map(({ text }) => text)).toEqual(['started', 'got user defined signal 1', 'done'])
  expect(wordsOf('critical').map(({ text }) => text)).toEqual(['started', 'got terminated', 'done'])
  const done = words.at(-1)?.at ?? 0
  expect(wordsOf('critical')[1]?.at).toBeGreaterThanOrEqual(done)
})

test('the API knows how they ended', async () => {
  const { items } = await cluster.objects('get', 'pods', '--selector', 'ends=with-words')
  const ends = items.map(({ metadata, status }) => {
    const disruption = status.conditions?.find(({ type }) => type === 'DisruptionTarget')
    return [metadata.name, status.phase, (disruption as { reason?: string } | undefined)?.reason]
  })
  expect(ends).toEqual([
    ['critical', 'Succeeded', 'TerminationByKubelet'],
    ['own-signal', 'Succeeded', 'TerminationByKubelet'],
    ['slow', 'Succeeded', 'TerminationByKubelet'],
  ])
})

/** The lines that a pod wrote on its node, with their times in milliseconds. */
function wordsOf(pod: string): { at: number; text: string }[] {
  const file = join('/proc', String(cluster.initOf(worker)), 'root/var/words', pod)
  const lines = readFileSync(file, 'utf8').trim().split('\n')
  return lines.map((line) => ({ at: Number(line.split(' ')[0]), text: line.slice(line.indexOf(' ') + 1) }))
}

/** A pod on the worker that writes to its file there, and ends some seconds after its signal. */
function pod(name: string, seconds: number, container: object = {}, spec: object = {}) {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, labels: { ends: seconds > 0 ? 'with-words' : 'by-itself' } },
    spec: {
      nodeName: worker,
      containers: [
        {
          name: 'guest',
          image: 'guests.test/guest:1',
          args: ['words', `/words/${name}`, String(seconds)],
          volumeMounts: [{ name: 'words', mountPath: '/words' }],
          ...container,
        },
      ],
      volumes: [{ name: 'words', hostPath: { path: '/var/words', type: 'DirectoryOrCreate' } }],
      ...spec,
    },
  }
}

const hook = { exec: { command: ['/guest', 'append', '/words/slow', 'hook', '2'] } }
const slow = pod('slow', 3, { lifecycle: { preStop: hook } }, { terminationGracePeriodSeconds: 25 })
const critical = pod('critical', 1, {}, { priorityClassName: 'system-node-critical' })
const ownSignal = pod('own-signal', 1, { image: 'guests.test/stopped:1' })
