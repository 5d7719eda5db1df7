/** The machine API as users meet it: talosctl's commands and the field's own Go client, against a real cluster. */

import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { mkdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { parse, parseAllDocuments } from 'yaml'
import { day, newCA, newCertificate, type PemPair } from '../../src/pki/certificate.ts'
import { buildClient, runClient, talosconfig } from '../interop/client.ts'
import { transcript } from '../programs/talosctl/peer.ts'
import type { CommandResult } from '../support/command-result.ts'
import { eventually, succeeded, TestCluster } from './cluster.ts'
import { timeServer } from './time-server.ts'

setDefaultTimeout(240_000)

const cluster = new TestCluster('api')
let controlPlane = ''
let worker = ''
let gateway = ''
let clock: { close(): void }

beforeAll(async () => {
  await cluster.create('--workers', '1')
  const ip = (role: string) => cluster.nodes().find((node) => node.role === role)?.ip ?? ''
  controlPlane = ip('controlplane')
  worker = ip('worker')
  gateway = controlPlane.replace(/\d+$/, '1')
  clock = await timeServer(gateway)
})
afterAll(async () => {
  clock?.close()
  await cluster.destroy()
  cluster.close()
})

const on = (nodes: string[], ...args: string[]) => cluster.talosctl('--nodes', nodes.join(','), ...args)
const nameOf = (address: string) => cluster.nodes().find(({ ip }) => ip === address)?.name ?? ''
const onControlPlane = async (...args: string[]) => succeeded(await on([controlPlane], ...args)).stdout
/** The titles of a table's columns. */
const titles = (text: string) => (text.split('\n')[0] ?? '').trim().split(/\s{2,}/)
const rows = (text: string) => text.split('\n').slice(1).filter(Boolean)
const nodesOf = (text: string) => [...new Set(rows(text).map((row) => row.split(' ')[0]))].sort()

describe('tables are those of the recordings, with rows of every requested node', () => {
  const recorded = ['services', 'containers', 'containers-k', 'stats', 'stats-k', 'processes', 'memory', 'mounts', 'ls', 'ls-l', 'ls-type']
  test.each([...recorded, 'usage', 'usage-a', 'netstat-l', 'members'])('%s', async (name) => {
    const { args, stdout } = transcript(name)
    const one = await onControlPlane(...args)
    expect(titles(one)).toEqual(titles(stdout))
    expect(nodesOf(one)).toEqual([controlPlane])
    const both = succeeded(await on([controlPlane, worker], ...args)).stdout
    expect(titles(both)).toEqual(titles(stdout))
    expect(nodesOf(both)).toEqual([controlPlane, worker])
  })

  test.each(['etcd-members', 'etcd-status'])('%s, of which a worker has none', async (name) => {
    const { args, stdout } = transcript(name)
    expect(titles(await onControlPlane(...args))).toEqual(titles(stdout))
    const both = succeeded(await on([controlPlane, worker], ...args))
    expect(nodesOf(both.stdout)).toEqual([controlPlane])
    expect(both.stderr).toContain(worker)
    expect((await on([worker], ...args)).code).toBe(1)
  })

  test.each([
    [
      ['image', 'list'],
      ['NODE', 'IMAGE', 'DIGEST', 'SIZE'],
    ],
    [
      ['image', 'list', '--namespace', 'system'],
      ['NODE', 'IMAGE', 'DIGEST', 'SIZE'],
    ],
    [
      ['get', 'volumestatus'],
      ['NODE', 'NAMESPACE', 'TYPE', 'ID', 'VERSION', 'TYPE', 'PHASE', 'LOCATION', 'SIZE'],
    ],
    [
      ['get', 'links'],
      ['NODE', 'NAMESPACE', 'TYPE', 'ID', 'VERSION', 'ALIAS', 'TYPE', 'KIND', 'HW ADDR', 'OPER STATE', 'LINK STATE'],
    ],
    [
      ['get', 'machinestatus'],
      ['NODE', 'NAMESPACE', 'TYPE', 'ID', 'VERSION', 'STAGE', 'READY'],
    ],
    [
      ['get', 'devicesstatus'],
      ['NODE', 'NAMESPACE', 'TYPE', 'ID', 'VERSION', 'READY'],
    ],
    [
      ['netstat', '--all', '--programs', '--pods', '--extend', '--timers'],
      ['NODE', 'Proto'],
    ],
  ])('%j', async (args, header) => {
    const { stdout } = succeeded(await on([controlPlane, worker], ...args))
    expect(titles(stdout).slice(0, header.length)).toEqual(header)
    expect(nodesOf(stdout)).toEqual([controlPlane, worker])
  })

  test('etcd alarm list is empty, and a container node has no disks of its own', async () => {
    expect(await onControlPlane('etcd', 'alarm', 'list')).toBe('')
    expect(await onControlPlane('get', 'disks')).toMatch(/^NODE +NAMESPACE +TYPE +ID +VERSION +SIZE .*\n$/)
  })
})

describe('a node reports', () => {
  test('its version and who made it', async () => {
    const { stdout } = succeeded(await on([controlPlane, worker], 'version'))
    expect(stdout.match(/^\tTag: +v1\.13\.\d+$/gm)).toHaveLength(3)
    for (const node of [controlPlane, worker]) expect(stdout).toMatch(new RegExp(`^\tNODE: +${node}$`, 'm'))
    expect(await onControlPlane('read', '/etc/os-release')).toContain('ID="ichor"')
  })

  test('a service’s state and history, and its memory line by line', async () => {
    const labels = (text: string, end: RegExp) => text.split('\n').flatMap((line) => end.exec(line)?.[1] ?? [])
    const service = /^([A-Z]+) /
    expect(labels(await onControlPlane('service', 'apid'), service)).toEqual(labels(transcript('service-apid').stdout, service))
    const memory = /^(MemTotal|MemFree|Cached|HugePages_Total|DirectMap4k): /
    expect(labels(await onControlPlane('memory', '-v'), memory)).toEqual(labels(transcript('memory-verbose').stdout, memory))
  })

  test('logs of services and of containers, kernel messages, and events as they come', async () => {
    expect(await onControlPlane('logs', 'apid', '--tail', '2')).toMatch(new RegExp(`^${controlPlane}: .*\n${controlPlane}: .*\n$`))
    const pod = (await onControlPlane('containers', '-k')).match(/kube-system\/kube-apiserver\S*:kube-apiserver:\S+/)?.[0] ?? ''
    expect(await onControlPlane('logs', '-k', pod, '--tail', '1')).toMatch(new RegExp(`^${controlPlane}: .+\n$`))
    expect((await onControlPlane('dmesg')).length).toBeGreaterThan(0)
    expect(titles(await firstLines(2, '--nodes', controlPlane, 'events', '--tail', '3'))).toEqual([
      'NODE',
      'ID',
      'EVENT',
      'ACTOR',
      'SOURCE',
      'MESSAGE',
    ])
    expect(titles(await firstLines(2, '--nodes', controlPlane, 'get', 'members', '--watch')).slice(0, 3)).toEqual([
      'NODE',
      '*',
      'NAMESPACE',
    ])
  })

  test('resources as YAML, as JSON and by path', async () => {
    expect(parse(await onControlPlane('get', 'hostname', '-o', 'yaml'))).toMatchObject({
      node: controlPlane,
      metadata: { type: 'HostnameStatuses.net.talos.dev' },
      spec: { hostname: 'api-controlplane-1' },
    })
    expect(JSON.parse(await onControlPlane('get', 'nodename', '-o', 'json'))).toMatchObject({ spec: { nodename: 'api-controlplane-1' } })
    const { args } = transcript('get-jsonpath')
    expect((await onControlPlane(...args)).split('\n').filter(Boolean).sort()).toEqual(['api-controlplane-1', 'api-worker-1'])
  })

  test('how its controllers depend on each other', async () => {
    const graph = await onControlPlane('inspect', 'dependencies')
    expect(graph).toMatch(/^digraph \{\n/)
    expect(graph).toContain(
      '"HostnameMergeControllers.net.talos.dev" -> "network.HostnameSpecController" [label="HostnameSpecs.net.talos.dev"]',
    )
  })

  test('the time beside that of a server', async () => {
    const { stdout } = succeeded(await on([controlPlane, worker], 'time', '--check', gateway))
    expect(titles(stdout)).toEqual(['NODE', 'NTP-SERVER', 'NODE-TIME', 'NTP-SERVER-TIME'])
    expect(nodesOf(stdout)).toEqual([controlPlane, worker])
    const patch = JSON.stringify({ machine: { time: { servers: [gateway] } } })
    for (const node of [controlPlane, worker]) succeeded(await on([node], 'patch', 'machineconfig', '--patch', patch))
    const [row = ''] = rows(await onControlPlane('time'))
    const [, server, here = '', there = ''] = row.trim().split(/\s{2,}/)
    expect(server).toBe(gateway)
    const moment = (text: string) => Date.parse(text.replace(/(\.\d{3})\d* \+0000 UTC/, '$1Z').replace(' ', 'T'))
    expect(Math.abs(moment(there) - moment(here) - 60_000)).toBeLessThan(1_000)
  })

  test('that the cluster is healthy, checked on the node and from here', async () => {
    const lines = (result: CommandResult) => succeeded(result).stderr.match(/^waiting for .*: OK$/gm)
    const onNode = lines(await on([controlPlane], 'health', '--wait-timeout', '1m'))
    expect(onNode?.length).toBeGreaterThan(12)
    expect(onNode).toContain('waiting for etcd to be healthy: OK')
    const here = ['--server=false', '--wait-timeout', '1m', '--control-plane-nodes', controlPlane, '--worker-nodes', worker]
    expect(lines(await on([controlPlane], 'health', ...here))).toEqual(onNode!)
  })
})

describe('files', () => {
  test('are copied, a folder whole', async () => {
    const to = join(cluster.home, 'copied')
    mkdirSync(to)
    await onControlPlane('copy', '/etc/cri', to)
    expect(readFileSync(join(to, 'conf.d', 'cri.toml'), 'utf8')).toContain('version')
  })

  test('hold etcd’s database, and the administrator’s kubeconfig', async () => {
    const snapshot = join(cluster.home, 'etcd.snapshot')
    await onControlPlane('etcd', 'snapshot', snapshot)
    expect(statSync(snapshot).size).toBeGreaterThan(100_000)
    const config = join(cluster.home, 'admin.yaml')
    await onControlPlane('kubeconfig', '--merge=false', config)
    expect(parse(readFileSync(config, 'utf8'))['current-context']).toBe('admin@api')
  })
})

describe('requested actions take effect', () => {
  test('a service is restarted, and one that the machine needs is not stopped', async () => {
    const started = async () => (await onControlPlane('service', 'kubelet')).match(/Started task kubelet \(PID \d+\)/)?.[0]
    const before = await started()
    await onControlPlane('service', 'kubelet', 'restart')
    await eventually(async () => {
      const now = await started()
      if (now === undefined || now === before) throw new Error('it is the old one')
    })
    expect(await on([controlPlane], 'service', 'apid', 'stop')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('FailedPrecondition'),
    })
  })

  test('a configuration is tried out without effect, and a broken one refused', async () => {
    const label = (value: string) => JSON.stringify({ machine: { nodeLabels: { 'story.test/label': value } } })
    const patch = (...args: string[]) => on([worker], 'patch', 'machineconfig', ...args)
    succeeded(await patch('--dry-run', '--patch', label('dry')))
    expect(succeeded(await on([worker], 'get', 'machineconfig', 'v1alpha1', '-o', 'yaml')).stdout).not.toContain('story.test/label')
    succeeded(await patch('--patch', label('wet')))
    expect(succeeded(await on([worker], 'get', 'machineconfig', 'v1alpha1', '-o', 'yaml')).stdout).toContain('story.test/label: wet')
    await eventually(async () => {
      const { items } = await cluster.objects('get', 'nodes', '--selector', 'story.test/label=wet')
      expect(items.map(({ metadata }) => metadata.name)).toEqual(['api-worker-1'])
    })
    expect(await patch('--patch', '{"machine":{"nonsense":1}}')).toMatchObject({ code: 1, stderr: expect.stringContaining('nonsense') })
  })

  test('credentials are made for somebody who may only read', async () => {
    const file = join(cluster.home, 'reader')
    await onControlPlane('config', 'new', '--roles', 'os:reader', file)
    const asReader = (...args: string[]) => cluster.talosctl('--talosconfig', file, '--nodes', controlPlane, ...args)
    expect(nodesOf(succeeded(await asReader('services')).stdout)).toEqual([controlPlane])
    for (const args of [
      ['reboot', '--wait=false'],
      ['read', '/etc/hosts'],
      ['get', 'machineconfig', '-o', 'yaml'],
    ])
      expect(await asReader(...args)).toMatchObject({ code: 1, stderr: expect.stringContaining('PermissionDenied') })
  })

  test('etcd is tidied up', async () => {
    await onControlPlane('etcd', 'defrag')
    await onControlPlane('etcd', 'alarm', 'disarm')
  })

  test('an image that the node holds is pulled again, and one is removed', async () => {
    await onControlPlane('image', 'pull', 'registry.k8s.io/pause:3.10.1')
    expect((await on([controlPlane], 'image', 'pull', '127.0.0.1:1/nothing:v1')).code).toBe(1)
  })
})

describe('what cannot be is refused in one line, with exit code 1', () => {
  test.each([
    [['bootstrap'], /FailedPrecondition|AlreadyExists/],
    [['get', 'nope'], /resource "nope" is not registered/],
    [['service', 'nope'], /service "nope" is not registered/],
    [['read', '/nowhere'], /NotFound/],
    [['restart', 'nothing'], /NotFound/],
    [['time', '--check', '127.0.0.1:9'], /Unavailable.*ECONNREFUSED/],
    [['logs', 'nope'], /NotFound/],
    [['etcd', 'remove-member', '1'], /NotFound/],
  ])('%j', async (args, message) => {
    const result = await on([controlPlane], ...args)
    expect(result).toMatchObject({ code: 1, stdout: '' })
    expect(result.stderr).toMatch(message)
  })

  test('several nodes where one must be named', async () => {
    for (const args of [['read', '/etc/hosts'], ['health'], ['kubeconfig'], ['etcd', 'snapshot', 'x'], ['inspect', 'dependencies']])
      expect(await on([controlPlane, worker], ...args)).toMatchObject({ code: 1, stderr: expect.stringContaining('multiple nodes') })
  })
})

// It is written in Go; what a machine without Go can show is shown above.
describe.skipIf(!Bun.which('go'))('the official client', () => {
  const files: Record<string, string> = {}
  let program = ''
  const run = (who: string, ...args: string[]) =>
    runClient(program, ['-talosconfig', files[who]!, '-endpoint', `${controlPlane}:50000`, ...args])

  beforeAll(async () => {
    program = await buildClient()
    const documents = await onControlPlane('get', 'machineconfig', 'v1alpha1', '-o', 'jsonpath={.spec}')
    const config: { machine: { ca: { crt: string; key: string } } } = parseAllDocuments(documents)[0]?.toJS()
    const text = (base64: string) => Buffer.from(base64, 'base64').toString()
    const ca: PemPair = { crt: text(config.machine.ca.crt), key: text(config.machine.ca.key) }
    const certificate = (roles: string[], issuer = ca, now = new Date()) =>
      newCertificate({ ca: issuer, subject: { organizations: roles }, usage: ['clientAuth'], lifetime: day, now })
    const twin = newCA({ subject: { organizations: ['talos'] } })
    files.admin = talosconfig(cluster.home, ca.crt, certificate(['os:admin']))
    files.reader = talosconfig(cluster.home, ca.crt, certificate(['os:reader']))
    files.stranger = talosconfig(cluster.home, ca.crt, certificate(['os:admin'], twin))
    files.late = talosconfig(cluster.home, ca.crt, certificate(['os:admin'], ca, new Date(Date.now() - 3 * day)))
  })

  test('gets versions, here, of a node and of both', async () => {
    const version = { tag: expect.stringMatching(/^v1\.13\./), os: 'linux' }
    expect(await run('reader', 'version')).toMatchObject({ messages: [{ version }] })
    expect(await run('reader', '-node', worker, 'version')).toMatchObject({ messages: [{ version }] })
    expect(await run('reader', '-nodes', `${controlPlane},${worker}`, 'version')).toMatchObject({
      messages: [controlPlane, worker].map((hostname) => ({ metadata: { hostname }, version })),
    })
  })

  test('lists services, of the worker through the control plane', async () => {
    const reply = (await run('reader', '-node', worker, 'services')) as { messages: { services: { id: string; state: string }[] }[] }
    expect(reply.messages[0]?.services.map(({ id }) => id)).toEqual(['apid', 'containerd', 'cri', 'kubelet', 'machined', 'registryd'])
    expect(new Set(reply.messages[0]?.services.map(({ state }) => state))).toEqual(new Set(['Running']))
  })

  test('gets and watches resources', async () => {
    expect(await run('reader', '-node', controlPlane, 'get', 'network', 'HostnameStatuses.net.talos.dev', 'hostname')).toMatchObject({
      id: 'hostname',
      owner: 'network.HostnameSpecController',
      spec: expect.stringContaining('hostname: api-controlplane-1'),
    })
    expect(await run('reader', '-node', worker, 'watch', 'cluster', 'Members.cluster.talos.dev', '3')).toEqual([
      'Created api-controlplane-1',
      'Created api-worker-1',
      'Bootstrapped',
    ])
  })

  test('reads logs and files, and copies folders', async () => {
    expect(await run('reader', '-node', worker, 'logs', 'apid')).toContain('apid serves port=50000')
    expect(await run('admin', '-node', controlPlane, 'read', '/etc/os-release')).toContain('ID="ichor"')
    const copied = (await run('admin', '-node', controlPlane, 'copy', '/etc/cri')) as Record<string, number>
    expect(Object.keys(copied)).toContain('conf.d/cri.toml')
  })

  test('is denied what a reader may not do', async () => {
    expect(await run('reader', '-node', controlPlane, 'reboot')).toMatchObject({ code: 'PermissionDenied' })
    expect(await run('reader', '-node', worker, 'read', '/etc/os-release')).toMatchObject({ code: 'PermissionDenied' })
    expect(await run('reader', '-node', controlPlane, 'get', 'config', 'MachineConfigs.config.talos.dev', 'v1alpha1')).toMatchObject({
      code: 'PermissionDenied',
    })
  })

  test('is refused with a certificate of another authority of the same name, and with an expired one', async () => {
    for (const who of ['stranger', 'late']) expect(await run(who, '-timeout', '5s', 'version')).toMatchObject({ code: 'Unavailable' })
  })
})

test('a node reboots on request, and has the same identity again', async () => {
  const begun = async () => parse(succeeded(await on([worker], 'get', 'machinestatus', '-o', 'yaml')).stdout).metadata.created as string
  const bootId = async () => succeeded(await on([worker], 'read', '/proc/sys/kernel/random/boot_id')).stdout.trim()
  const bootIdInKubernetes = async () => {
    const { items } = await cluster.objects('get', 'nodes')
    return items.find(({ metadata }) => metadata.name === nameOf(worker))?.status.nodeInfo?.bootID
  }
  const before = { begun: await begun(), bootId: await bootId() }
  expect(await bootIdInKubernetes()).toBe(before.bootId)
  succeeded(await on([worker], 'reboot', '--timeout', '1m'))
  expect(await begun()).not.toBe(before.begun)
  // Who waits for a reboot waits for another boot id, as the field's own client does.
  expect(await bootId()).toMatch(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/)
  expect(await bootId()).not.toBe(before.bootId)
  await eventually(async () => expect(await bootIdInKubernetes()).toBe(await bootId()), 60)
  const result = await on([controlPlane], 'health', '--wait-timeout', '1m')
  succeeded(result)
})

test('an apid that is killed again and again is back each time before the restart interval is over', async () => {
  const name = nameOf(worker)
  const waits: number[] = []
  for (let kills = 0; kills < 4; kills++) {
    const apid = cluster.processIn(name, '/usr/bin/apid') ?? 0
    process.kill(apid, 'SIGKILL')
    const began = performance.now()
    // The old one's listener may take a connection while it dies.
    while (cluster.processesIn(name).includes(apid)) await Bun.sleep(5)
    await eventually(async () => (await Bun.connect({ hostname: worker, port: 50_000, socket: { data() {} } })).end(), 10)
    waits.push(Math.round(performance.now() - began))
    await eventually(async () => {
      const { stdout } = await on([worker], 'service', 'apid')
      expect(stdout).toMatch(/^HEALTH\s+OK$/m)
    }, 10)
  }
  // Half a second on a quiet machine; the interval is five seconds.
  expect(Math.max(...waits)).toBeLessThan(4_500)
  succeeded(await on([worker], 'version', '--short'))
})

/** The first lines of a command that goes on until it is stopped. */
async function firstLines(count: number, ...args: string[]): Promise<string> {
  const child = cluster.start(...args)
  let text = ''
  const decoder = new TextDecoder()
  for await (const chunk of child.stdout) {
    text += decoder.decode(chunk, { stream: true })
    if (text.split('\n').length > count) break
  }
  child.kill('SIGINT')
  await child.exited
  return text
}

describe('what the node keeps of itself', () => {
  test('calls are in its audit log, as text and as resources, with who called and how it ended', async () => {
    await onControlPlane('memory')
    const refused = await on([controlPlane], 'wipe', 'disk', 'sda')
    expect(refused.stderr).toMatch(/method is not supported in container mode/)
    const line = /method=machine\.MachineService\/Memory outcome=OK from=[\d.]+ by=".*" roles=os:admin ms=/
    const log = await eventually(async () => {
      const [reads, changes] = [await onControlPlane('logs', 'audit-reads'), await onControlPlane('logs', 'audit')]
      expect(reads).toMatch(line)
      expect(changes).toContain('BlockDeviceWipe outcome=started')
      expect(changes).toContain('BlockDeviceWipe outcome=FailedPrecondition')
      return reads + changes
    }, 10)
    expect(log).not.toContain('PRIVATE KEY')
    expect(titles(await onControlPlane('get', 'audit')).slice(5)).toEqual(['TIME', 'METHOD', 'OUTCOME', 'FROM', 'BY', 'ROLES', 'CALLS'])
  })

  test('metrics of both nodes are one text that Prometheus reads', async () => {
    const { stdout } = succeeded(await on([controlPlane, worker], 'metrics', '--name', 'ichor_controller_failures_in_row'))
    expect(stdout.match(/^# TYPE /gm)).toHaveLength(1)
    for (const node of [controlPlane, worker]) expect(stdout).toContain(`{node="${node}",controller="`)
  })

  test('a support bundle of both nodes holds no key', async () => {
    const path = join(cluster.home, 'support.zip')
    const { stderr } = succeeded(await on([controlPlane, worker], 'support', '-O', path, '-w', '8'))
    expect(stderr).not.toContain('SOURCE')
    const bundle = Bun.spawnSync([
      'python3',
      '-c',
      'import sys,zipfile\nz=zipfile.ZipFile(sys.argv[1])\nassert z.testzip() is None\nfor n in z.namelist(): sys.stdout.buffer.write(n.encode()+b"\\n"+z.read(n))',
      path,
    ])
    const text = bundle.stdout.toString()
    expect(text).toContain(`${worker}/service-logs/kubelet.log`)
    expect(text).not.toMatch(/PRIVATE KEY-----\n(?!\*\*REDACTED)/)
  })

  test('packets of its link are captured, those of a filter alone', async () => {
    const path = join(cluster.home, 'api.pcap')
    const [captured] = await Promise.all([
      on([controlPlane], 'pcap', '--bpf-filter', 'tcp dst port 6443', '--duration', '3s', '-o', path),
      Bun.sleep(1000).then(() => fetch(`https://${controlPlane}:6443/version`, { tls: { rejectUnauthorized: false } })),
    ])
    succeeded(captured)
    const file = readFileSync(path)
    expect(file.readUInt32LE(0)).toBe(0xa1b2c3d4)
    // The file's header has 24 bytes, and each packet one of its own.
    expect(file.length).toBeGreaterThan(24)
    expect((await on([controlPlane], 'pcap', '-i', 'nosuch')).stderr).toContain('there is no such link, there are ')
  })
})
