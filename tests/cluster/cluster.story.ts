/** One cluster's life on real parts: made, used, hurt, grown, shrunk, and gone without a trace. */

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { readdirSync, readFileSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { unitPath } from '../../src/programs/talosctl/cluster/host/unit.ts'
import { type CommandResult, finished } from '../support/command-result.ts'
import { crashHost } from '../support/host-crash.ts'
import { eventually, succeeded, TestCluster } from './cluster.ts'
import type { Traces } from './host.ts'

const cluster = new TestCluster('story')
let before: Traces
const controlPlane = 'story-controlplane-1'
const worker = 'story-worker-1'
const exposed = 38_080

beforeAll(() => {
  before = cluster.traces()
})
afterAll(() => cluster.end())

test('one command makes a cluster in which every node is ready and every system pod runs', async () => {
  const { stderr } = await cluster.create('--exposed-ports', `${exposed}:30080/tcp`)
  expect(stderr).toContain('waiting for coredns to report ready: OK')
  const { items: nodes } = await cluster.objects('get', 'nodes')
  expect(nodes.map(({ metadata }) => metadata.name).sort()).toEqual([controlPlane, worker])
  for (const { status } of nodes) expect(status.conditions?.find(({ type }) => type === 'Ready')?.status).toBe('True')
  const { items: pods } = await cluster.objects('get', 'pods', '--namespace', 'kube-system')
  expect(pods.length).toBeGreaterThan(5)
  expect(pods.filter(({ status }) => status.phase !== 'Running').map(({ metadata }) => metadata.name)).toEqual([])
})

test('the same command again reports that it runs', async () => {
  const { stderr } = await cluster.create()
  expect(stderr).toContain('cluster "story" is running with 1 control plane and 1 worker')
})

test('a node that was reset waits in maintenance, and the same command brings it back', async () => {
  const stage = async (...flags: string[]) => {
    const { stdout } = succeeded(
      await cluster.talosctl('--nodes', ipOf(worker), 'get', 'machinestatus', '-o', 'jsonpath={.spec.stage}', ...flags),
    )
    return stdout.trim()
  }
  succeeded(await cluster.talosctl('--nodes', ipOf(worker), 'reset', '--graceful', '--reboot', '--wait=false'))
  await eventually(async () => expect(await stage('--insecure')).toBe('maintenance'))
  expect((await cluster.create()).stderr).not.toContain('is running with')
  expect(await stage()).toBe('running')
  expect((await cluster.create()).stderr).toContain('cluster "story" is running with 1 control plane and 1 worker')
})

test('the client configuration that was there is still there, and the new context is the current one', async () => {
  const { stdout } = succeeded(await cluster.talosctl('config', 'contexts'))
  expect(stdout).toMatch(/^\*\s+story\s/m)
  expect(succeeded(await cluster.kubectl(['config', 'current-context'])).stdout.trim()).toBe('admin@story')
})

test('cluster show lists the nodes with their addresses', async () => {
  const { stdout } = succeeded(await cluster.talosctl('cluster', 'show', '--name', 'story'))
  expect(stdout).toMatch(/^PROVISIONER +container$/m)
  for (const { name, role, ip } of cluster.nodes()) expect(stdout).toMatch(new RegExp(`^${name} +${role} +${ip} `, 'm'))
})

test('a Deployment’s pods on two nodes answer through their Service, by its DNS name', async () => {
  succeeded(await cluster.kubectl(['apply', '-f', '-'], whoami))
  const pods = await eventually(async () => {
    const { items } = await cluster.objects('get', 'pods', '--selector', 'app=whoami')
    const ready = items.filter(({ status }) => status.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True'))
    if (ready.length !== 2) throw new Error(`${ready.length} pods are ready`)
    return ready
  })
  expect(new Set(pods.map(({ spec }) => spec.nodeName)).size).toBe(2)
  const { items: dns } = await cluster.objects('get', 'services', '--namespace', 'kube-system', '--selector', 'k8s-app=kube-dns')
  const resolver = dns[0]?.spec.clusterIP ?? ''
  // From the network of a pod on each node: name, Service, pods of both nodes.
  for (const node of [controlPlane, worker]) {
    const pid = podProcess(node)
    const [address] = await eventually(() => cluster.resolve(pid, resolver, 'whoami.default.svc.cluster.local'), 30)
    const script = `
      const seen = []
      for (let i = 0; i < 20; i++) seen.push(await (await fetch('http://${address}:8080/health', { keepalive: false, signal: AbortSignal.timeout(5000) })).text())
      console.log(seen.every((text) => text === 'OK'))`
    const answered = await eventually(async () => succeeded(await cluster.inNetworkOf(pid, script)), 30)
    expect(answered.stdout.trim()).toBe('true')
  }
})

test('ports of this host lead to the Deployment, to Kubernetes and to the machines', async () => {
  const answer = await fetch(`http://127.0.0.1:${exposed}/health`, { signal: AbortSignal.timeout(5000) })
  expect(await answer.text()).toBe('OK')
  const { kubernetes, machineApi } = cluster.record()
  const server = `https://127.0.0.1:${kubernetes.hostPort}`
  expect(succeeded(await cluster.kubectl(['--server', server, 'get', '--raw', '/readyz'])).stdout).toBe('ok')
  succeeded(await cluster.talosctl('--endpoints', `127.0.0.1:${machineApi.hostPort}`, '--nodes', ipOf(controlPlane), 'version'))
})

test.each([
  ['apid', '/usr/bin/apid'],
  ['trustd', '/usr/bin/trustd'],
  ['kubelet', '/usr/local/bin/kubelet'],
  ['etcd', '/usr/local/bin/etcd'],
  ['containerd', '/usr/bin/containerd --address /system/run'],
  ['cri', '/usr/bin/containerd --address /run'],
])('%s is killed and comes back', async (service, commandLine) => {
  const victim = cluster.processIn(controlPlane, commandLine)
  expect(victim).toBeDefined()
  process.kill(victim ?? 0, 'SIGKILL')
  await eventually(async () => {
    const pid = cluster.processIn(controlPlane, commandLine)
    if (pid === undefined || pid === victim) throw new Error(`${service} is not back`)
    const { stdout } = succeeded(await cluster.talosctl('--nodes', ipOf(controlPlane), 'service', service))
    if (!/^STATE +Running$/m.test(stdout) || !/^HEALTH +OK$/m.test(stdout)) throw new Error(stdout)
  })
  await healthy()
})

test('a control plane whose init is killed is started again by its supervisor', async () => {
  const init = cluster.initOf(controlPlane)
  process.kill(init, 'SIGKILL')
  await eventually(async () => {
    if (cluster.initOf(controlPlane) === init) throw new Error('the old one is still there')
  })
  await healthy()
  const { stdout } = succeeded(await cluster.talosctl('cluster', 'show', '--name', 'story'))
  expect(stdout).toContain(`${controlPlane}: running, restarted 1 times (init was killed by SIGKILL)`)
})

test('supervisors and the discovery server are killed and come back', async () => {
  const directory = `${cluster.state}/story`
  const locks = [
    `${directory}/gateway/supervisor.lock`,
    `${directory}/gateway/discovery.lock`,
    `${directory}/nodes/${worker}/supervisor.lock`,
  ]
  const holder = (file: string) => JSON.parse(readFileSync(file, 'utf8')) as { pid: number; start: string }
  const killed = locks.map(holder)
  for (const { pid } of killed) process.kill(pid, 'SIGKILL')
  await eventually(async () => {
    for (const [i, file] of locks.entries()) if (holder(file).pid === killed[i]?.pid) throw new Error(`${file} is still the old one's`)
  })
  await healthy()
})

test('a worker joins, and leaves on request', async () => {
  await cluster.create('--workers', '2')
  const names = async () => (await cluster.objects('get', 'nodes')).items.map(({ metadata }) => metadata.name)
  expect(await names()).toContain('story-worker-2')
  const refused = await cluster.talosctl('cluster', 'create', '--name', 'story', '--workers', '1')
  expect(refused).toMatchObject({ code: 1, stderr: 'this would remove story-worker-2 from cluster "story": add --yes to do it\n' })
  await cluster.create('--workers', '1', '--yes')
  expect(cluster.nodes().map(({ name }) => name)).toEqual([controlPlane, worker])
  await eventually(async () => {
    const { stdout } = succeeded(await cluster.talosctl('--nodes', ipOf(controlPlane), 'get', 'members'))
    if (stdout.includes('story-worker-2')) throw new Error('it is still a member')
  })
})

test('control planes join etcd, and leave it on request', async () => {
  await cluster.create('--controlplanes', '3')
  const members = async () => {
    const { stdout } = succeeded(await cluster.talosctl('--nodes', ipOf(controlPlane), 'etcd', 'members'))
    return stdout.match(/story-controlplane-\d/g)?.sort()
  }
  expect(await members()).toEqual(['story-controlplane-1', 'story-controlplane-2', 'story-controlplane-3'])
  await cluster.create('--controlplanes', '1', '--yes')
  expect(await members()).toEqual(['story-controlplane-1'])
  await healthy()
})

test('a cluster is stopped with its nodes shut down, and started again', async () => {
  const { stderr } = succeeded(await cluster.talosctl('cluster', 'stop', '--name', 'story'))
  expect(stderr).toContain('cluster "story" is stopped')
  expect(cluster.traces().processes).toEqual([])
  expect(await cluster.startAgain('--restart-with-host')).toContain(`cluster "story" starts with this host: ${unitPath(cluster.record())}`)
  expect(await cluster.startAgain()).toContain('cluster "story" is running with 1 control plane and 1 worker')
})

test('after a crash of the host, of which only the disk is left, its unit brings the cluster back with its data', async () => {
  expect(await crashHost(join(cluster.state, 'story'))).toEqual([])
  // A loop device is released with the last mount namespace that holds it.
  await eventually(async () => expect(cluster.traces()).toEqual(before), 5)
  const image = cluster.record().image
  renameSync(image, `${image}.away`)
  const { code, stderr } = await startUnit()
  expect([code, stderr]).toEqual([1, expect.stringContaining(`cluster "story": the nodes' root file system is not at "${image}"`)])
  renameSync(`${image}.away`, image)
  succeeded(await startUnit())
  expect(await cluster.startAgain()).toContain('cluster "story" is running with')
  expect((await cluster.objects('get', 'deployments')).items.map(({ metadata }) => metadata.name)).toEqual(['whoami'])
})

test('destroy saves logs and state on request, and leaves nothing', async () => {
  const [support, logs] = [join(cluster.home, 'support.zip'), join(cluster.home, 'logs.tar.gz')]
  const nodes = cluster.nodes()
  const { stderr } = succeeded(await cluster.destroy('--save-support-archive-path', support, '--save-cluster-logs-archive-path', logs))
  expect(stderr).not.toContain('support archive')
  // The directory of a zip has the names of its files as they are.
  const directory = readFileSync(support).toString('latin1')
  for (const { ip } of nodes) expect(directory).toContain(`${ip}/version.json`)
  expect(Buffer.from(Bun.gunzipSync(readFileSync(logs))).toString('latin1')).toContain(`${worker}.log`)
  await eventually(async () => expect(cluster.traces()).toEqual(before), 5)
  expect(readdirSync('/etc/systemd/system').filter((name) => name.startsWith('ichor-story-'))).toEqual([])
  expect(succeeded(await cluster.talosctl('config', 'contexts')).stdout).not.toContain('story')
})

/** Runs what the cluster's unit starts, as systemd does. */
async function startUnit(): Promise<CommandResult> {
  const line = /^ExecStart=@(.*)$/m.exec(readFileSync(unitPath(cluster.record()), 'utf8'))?.[1] ?? ''
  const [file = '', argv0 = '', ...args] = line.split(' ')
  const child = Bun.spawn([file, ...args], { argv0, cwd: '/', env: { PATH: '/usr/sbin:/usr/bin' }, stdout: 'pipe', stderr: 'pipe' })
  return finished(child)
}

/** The address of a node. */
function ipOf(node: string): string {
  return cluster.nodes().find(({ name }) => name === node)?.ip ?? ''
}

/** A process in the network of one of the Deployment's pods on a node. */
function podProcess(node: string): number {
  const pid = cluster.processIn(node, '/coredns -conf /etc/whoami/Corefile')
  if (pid === undefined) throw new Error(`no pod of the Deployment on ${node}`)
  return pid
}

async function healthy(): Promise<void> {
  const role = (wanted: string) =>
    cluster
      .nodes()
      .filter(({ role }) => role === wanted)
      .map(({ ip }) => ip)
      .join(',')
  const args = [
    '--nodes',
    ipOf(controlPlane),
    'health',
    '--server=false',
    '--wait-timeout',
    '3m',
    '--control-plane-nodes',
    role('controlplane'),
  ]
  const workers = role('worker')
  succeeded(await cluster.talosctl(...args, ...(workers ? ['--worker-nodes', workers] : [])))
}

/** Two pods, one a node, that answer "OK" at /health; the image is one the root file system holds. */
const whoami = `
apiVersion: v1
kind: ConfigMap
metadata: { name: whoami }
data:
  Corefile: |
    .:5300 {
      health :8080
    }
---
apiVersion: apps/v1
kind: Deployment
metadata: { name: whoami }
spec:
  replicas: 2
  selector: { matchLabels: { app: whoami } }
  template:
    metadata: { labels: { app: whoami } }
    spec:
      tolerations: [{ operator: Exists }]
      topologySpreadConstraints:
        - { maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: DoNotSchedule, labelSelector: { matchLabels: { app: whoami } } }
      containers:
        - name: whoami
          image: registry.k8s.io/coredns/coredns:v1.14.7
          command: [/coredns, -conf, /etc/whoami/Corefile]
          readinessProbe: { httpGet: { path: /health, port: 8080 }, periodSeconds: 1 }
          volumeMounts: [{ name: config, mountPath: /etc/whoami }]
          securityContext: { allowPrivilegeEscalation: false, runAsNonRoot: true, runAsUser: 1000, capabilities: { drop: [ALL] }, seccompProfile: { type: RuntimeDefault } }
      volumes: [{ name: config, configMap: { name: whoami } }]
---
apiVersion: v1
kind: Service
metadata: { name: whoami }
spec:
  selector: { app: whoami }
  type: NodePort
  ports: [{ port: 8080, nodePort: 30080 }]
`
