/**
 * What holds a cluster together over time: starts of the kubelet that leave nothing behind, daemons behind their list of system
 * calls, the CIS benchmark, taints that follow the configuration, and a rotation of both authorities, after which every node is ready.
 */

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { generateKeyPairSync } from 'node:crypto'
import { copyFileSync, existsSync, readdirSync, readFileSync, readlinkSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { fromBase64, newCA, signedBy } from '../../src/pki/certificate.ts'
import { connectProxy } from '../os/connect-proxy.ts'
import { servePart, signedByKey } from '../support/private-registry.ts'
import { eventually, type KubeItem, succeeded, TestCluster } from './cluster.ts'
import { benchmark, buildKubeBench, exceptions, type KubeBench } from './kube-bench/kube-bench.ts'

const cluster = new TestCluster('trust')
const [first, second] = ['10.68.0.2', '10.68.0.3']
const controlPlane = 'trust-controlplane-1'
const worker = 'trust-worker-1'
const nodes = [
  [controlPlane, first],
  [worker, second],
] as const

beforeAll(async () => {
  await cluster.create(
    ...['--cidr', '10.68.0.0/24'],
    ...['--config-patch', JSON.stringify({ machine: { kubelet: { extraArgs: { 'rotate-server-certificates': 'true' } } } })],
  )
})
afterAll(() => cluster.end())

const on = async (node: string, ...args: string[]) => succeeded(await cluster.talosctl('-n', node, ...args)).stdout

describe('the kubelet', () => {
  /** What is mounted on the node itself: pods and containers come and go. */
  const mounted = () =>
    readFileSync(`/proc/${cluster.initOf(worker)}/mountinfo`, 'utf8')
      .split('\n')
      .map((line) => line.split(' ')[4] ?? '')
      .filter((target) => !/^\/(var\/lib\/kubelet\/pods|run\/containerd|run\/netns|var\/run)\//.test(target))
      .sort()

  /** Waits until what is done has made the worker's kubelet restart. */
  async function restarted(act: () => Promise<unknown>): Promise<void> {
    const before = cluster.processIn(worker, '/usr/local/bin/kubelet')
    await act()
    await eventually(async () => {
      const now = cluster.processIn(worker, '/usr/local/bin/kubelet')
      if (!now || now === before) throw new Error('the kubelet has not started over')
    })
  }

  test('leaves the mounts of its node as they were, however often it starts', async () => {
    const before = mounted()
    for (let starts = 0; starts < 3; starts++) await restarted(() => on(second, 'service', 'kubelet', 'restart'))
    expect(mounted()).toEqual(before)
  })

  test('adds the mounts of the configuration to its node once, and takes them away with it', async () => {
    const before = mounted()
    const bind = (source: string, destination: string, ...options: string[]) => ({ type: 'bind', source, destination, options })
    const places = ['/var/mnt/seen', '/var/lib/kubelet/other', '/run/scratch']
    const extraMounts = [
      bind('/var/mnt/seen', places[0]!, 'rbind', 'ro'),
      bind('/var/data', places[1]!, 'rbind', 'rshared', 'rw'),
      { type: 'tmpfs', source: 'tmpfs', destination: places[2], options: ['nosuid', 'size=64k'] },
    ]
    await restarted(() => on(second, 'patch', 'mc', '-p', JSON.stringify({ machine: { kubelet: { extraMounts } } })))
    for (let starts = 0; starts < 2; starts++) await restarted(() => on(second, 'service', 'kubelet', 'restart'))
    expect(mounted()).toEqual([...before, ...places].sort())
    const kubelet = cluster.processIn(worker, '/usr/local/bin/kubelet')
    const seen = readFileSync(`/proc/${kubelet}/mountinfo`, 'utf8').split('\n')
    const optionsAt = (place: string) => seen.flatMap((line) => (line.split(' ')[4] === place ? line.split(' ')[5] : []))
    expect(places.map((place) => optionsAt(place).length)).toEqual([1, 1, 1])
    expect(optionsAt(places[0]!)[0]).toStartWith('ro')
    await restarted(() => on(second, 'patch', 'mc', '-p', JSON.stringify({ machine: { kubelet: { extraMounts: { $patch: 'delete' } } } })))
    expect(mounted()).toEqual(before)
  }, 120_000)

  test('serves with a certificate of the cluster, which the API server verifies before it shows logs', async () => {
    expect(readFileSync(`/proc/${cluster.processIn(controlPlane, 'kube-apiserver')}/cmdline`, 'utf8')).toContain(
      '--kubelet-certificate-authority=',
    )
    await everyNodeShowsLogs()
  })
})

describe('the daemons', () => {
  test.each([
    ['apid', '/usr/bin/apid'],
    ['trustd', '/usr/bin/trustd'],
    ['etcd', '/usr/local/bin/etcd'],
  ])('%s runs behind its list of system calls', (_, program) => {
    expect(readFileSync(`/proc/${cluster.processIn(controlPlane, program)}/status`, 'utf8')).toMatch(/^Seccomp:\s+2$/m)
  })
})

describe('the CIS benchmark', () => {
  let bench: KubeBench

  beforeAll(async () => {
    bench = await buildKubeBench()
  }, 600_000)

  test.each([
    ['controlplane', controlPlane, 'master,etcd,controlplane,node', 90],
    ['worker', worker, 'node', 20],
  ])(
    'finds on a %s only what is known, each with its reason',
    async (role, node, targets, least) => {
      const found = await benchmark(bench, cluster, node, targets)
      expect(found.length).toBeGreaterThan(least)
      const known = exceptions().filter((one) => one.role === role)
      expect(known.filter(({ reason }) => reason === '')).toEqual([])
      expect(found.filter((one) => !one.endsWith(' PASS')).sort()).toEqual(known.map(({ check, result }) => `${check} ${result}`).sort())
    },
    60_000,
  )
})

describe('the taint of a control plane node', () => {
  const role = 'node-role.kubernetes.io/control-plane'
  const taints = async () => {
    const { spec } = JSON.parse(succeeded(await cluster.kubectl(['get', 'node', controlPlane, '-o', 'json'])).stdout)
    return ((spec.taints ?? []) as { key: string; effect: string }[]).map(({ key, effect }) => `${key}:${effect}`)
  }
  const allow = (allowed: boolean) =>
    on(first, 'patch', 'mc', '-p', JSON.stringify({ cluster: { allowSchedulingOnControlPlanes: allowed } }))

  test('follows the configuration on a node that is registered', async () => {
    expect(await taints()).toContain(`${role}:NoSchedule`)
    await allow(true)
    await eventually(async () => expect(await taints()).not.toContain(`${role}:NoSchedule`), 15)
    await allow(false)
    await eventually(async () => expect(await taints()).toContain(`${role}:NoSchedule`), 15)
  })
})

describe('a private registry', () => {
  const gateway = '10.68.0.1'
  const company = newCA({ kind: 'ecdsa', subject: { commonName: 'company' } })
  const signer = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  let registry: Awaited<ReturnType<typeof servePart>>
  let proxy: Awaited<ReturnType<typeof connectProxy>>
  beforeAll(async () => {
    registry = servePart(gateway, company, 'registry.test', (digest) => ({ 'story/signed': signedByKey(signer.privateKey, digest) }))
    proxy = await connectProxy({ 'registry.test:443': registry.port }, gateway)
  })
  afterAll(async () => {
    await apply({ kind: 'EnvironmentConfig', $patch: 'delete' })
    await apply({ kind: 'TrustedRootsConfig', name: 'company', $patch: 'delete' })
    await registry.close()
    proxy.close()
  })
  const pull = (name: string) => cluster.talosctl('-n', second, 'image', 'pull', name)
  const apply = (document: object) => on(second, 'patch', 'mc', '-p', JSON.stringify({ apiVersion: 'v1alpha1', ...document }))
  /** Starts a pod of an image of the registry, and returns the messages of its events with this reason once there are any. */
  async function podEvent(name: string, image: string, reason: string): Promise<string> {
    const containers = [{ name: 'part', image: `${gateway}:${registry.port}/${image}`, imagePullPolicy: 'Always' }]
    const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name }, spec: { nodeName: worker, restartPolicy: 'Never', containers } }
    succeeded(await cluster.kubectl(['create', '-f', '-'], JSON.stringify(pod)))
    const selector = `involvedObject.name=${name},reason=${reason}`
    let messages = ''
    await eventually(async () => {
      const found = await cluster.kubectl(['get', 'events', '--field-selector', selector, '-o', 'jsonpath={.items[*].message}'])
      messages = succeeded(found).stdout
      expect(messages).not.toBe('')
    }, 60)
    succeeded(await cluster.kubectl(['delete', 'pod', name, '--grace-period=0', '--force']))
    return messages
  }
  const startOfInit = () => readFileSync(`/proc/${cluster.initOf(worker)}/stat`, 'utf8').split(' ')[21]

  test('whose certificate is not trusted is what a pod without its image reports', async () => {
    expect(await podEvent('untrusted', 'story/part:2', 'Failed')).toContain('certificate signed by unknown authority')
  }, 90_000)

  test("behind a company's authority is trusted as soon as it is configured, without a restart of the node", async () => {
    const [name, started, pods] = [`${gateway}:${registry.port}/story/part:1`, startOfInit(), await podsOf(worker)]
    const { code, stderr } = await pull(name)
    expect([code, stderr]).toEqual([1, expect.stringMatching(/^.*certificate signed by unknown authority.*\n$/)])
    await apply({ kind: 'TrustedRootsConfig', name: 'company', certificates: company.crt })
    await eventually(async () => succeeded(await pull(name)), 60)
    expect(succeeded(await cluster.talosctl('-n', second, 'image', 'list')).stdout).toContain(name)
    const bundle = await on(second, 'read', '/etc/ssl/certs/ca-certificates.crt')
    expect(bundle).toEndWith(`\ncompany:\n========\n${company.crt}`)
    expect(bundle.match(/BEGIN CERTIFICATE/g)?.length).toBeGreaterThan(100)
    for (const program of ['/usr/local/bin/kubelet', '/usr/bin/apid'])
      await eventually(async () => expect(insideOf(program)).toBe(bundle), 60)
    // Containers outlive the restart of their daemon.
    expect([startOfInit(), await podsOf(worker)]).toEqual([started, pods])
  }, 120_000)

  test('delivers only images that are signed, once a rule requires it', async () => {
    const imagePattern = `${gateway}:${registry.port}/*`
    const certificate = signer.publicKey.export({ type: 'spki', format: 'pem' })
    await apply({ kind: 'ImageVerificationConfig', rules: [{ image: imagePattern, publicKey: { certificate } }] })
    await eventually(async () => expect(await on(second, 'get', 'imageverificationrules')).toContain('0000'))
    expect(await podEvent('unsigned', 'story/part:1', 'Failed')).toMatch(/is refused by rule 0000: it is not signed/)
    expect(await podEvent('signed', 'story/signed:1', 'Pulled')).toContain('story/signed:1')
    const { code, stderr } = await pull(`${gateway}:${registry.port}/story/part:1`)
    expect([code, stderr]).toEqual([1, expect.stringMatching(/^.*is refused by rule 0000: it is not signed\n$/)])
    succeeded(await pull(`${gateway}:${registry.port}/story/signed:1`))
    await apply({ kind: 'ImageVerificationConfig', $patch: 'delete' })
  }, 120_000)

  test('is reached through the proxy of the configuration', async () => {
    const name = 'registry.test/story/part:1'
    expect((await pull(name)).code).toBe(1)
    await apply({ kind: 'EnvironmentConfig', variables: { https_proxy: proxy.url, NO_PROXY: '10.0.0.0/8,.svc,.local' } })
    await eventually(async () => succeeded(await pull(name)), 60)
    expect(new Set(proxy.requests)).toEqual(new Set(['CONNECT registry.test:443 HTTP/1.1']))
  }, 120_000)

  const insideOf = (program: string) =>
    readFileSync(`/proc/${cluster.processIn(worker, program)}/root/etc/ssl/certs/ca-certificates.crt`, 'utf8')
  /** Names and restarts of the pods of a node. */
  const podsOf = async (node: string) => {
    const { items } = await cluster.objects('get', 'pods', '-A', '--field-selector', `spec.nodeName=${node}`)
    const restarts = ({ status }: KubeItem) => (status.containerStatuses ?? []).map(({ restartCount }) => restartCount)
    return items.map((pod) => [pod.metadata.name, ...restarts(pod)].join(' ')).sort()
  }
})

test('logs outlive a restart of the node', async () => {
  const last = () => on(second, 'logs', 'kubelet', '--previous', '--tail', '1')
  expect((await cluster.talosctl('-n', second, 'logs', 'kubelet', '--previous')).stderr).toContain('has nothing of the start before')
  const line = (await on(second, 'logs', 'machined')).split('\n')[0] ?? ''
  await on(second, 'reboot', '--wait')
  expect(await on(second, 'logs', 'machined', '--previous')).toStartWith(`${line}\n`)
  expect(await last()).toStartWith(`${second}: `)
  expect(await on(second, 'logs', 'machined')).not.toContain(line)
}, 120_000)

describe('a rotation of both authorities', () => {
  const next = { os: '', k8s: '' }
  const oldTalosconfig = cluster.env.TALOSCONFIG!
  const oldKubeconfig = join(cluster.home, 'old-kubeconfig')
  const newTalosconfig = join(cluster.home, 'rotated')
  const rotate = () =>
    cluster.start(
      ...['rotate-ca', '--dry-run=false', '--talosconfig', oldTalosconfig, '--output', newTalosconfig],
      ...['--kubeconfig', cluster.env.KUBECONFIG!],
    )
  const folder = join(cluster.home, 'rotations')
  const begun = () => {
    const [file = ''] = readdirSync(folder)
    const { machine, kubernetes } = JSON.parse(readFileSync(join(folder, file), 'utf8'))
    return { os: fromBase64(machine.next.crt), k8s: fromBase64(kubernetes.next.crt) }
  }

  /** Kills the command as soon as it has reported this line. */
  async function interruptedAt(line: string): Promise<void> {
    const command = rotate()
    let output = ''
    for await (const bytes of command.stderr as unknown as AsyncIterable<Uint8Array>) {
      output += Buffer.from(bytes).toString()
      if (output.includes(line)) command.kill('SIGKILL')
    }
    expect([output.includes(line), await command.exited]).toEqual([true, 137])
  }

  test('is only shown by a dry run, without a key', async () => {
    const { stdout, stderr } = succeeded(await cluster.talosctl('rotate-ca'))
    expect(stdout).toContain(`1. accept the new authority: ${first}, ${second}`)
    expect(stdout + stderr).not.toContain('PRIVATE')
    expect(existsSync(folder)).toBe(false)
  })

  test('continues after an interruption with the same new authorities', async () => {
    copyFileSync(cluster.env.KUBECONFIG!, oldKubeconfig)
    await interruptedAt(`machine API: issue with the new authority (2/3): ${first} changed`)
    const at = begun()
    await interruptedAt(`Kubernetes: issue with the new authority (2/3): ${first} changed`)
    expect(begun()).toEqual(at)
    const command = rotate()
    const [stderr, code] = await Promise.all([new Response(command.stderr).text(), command.exited])
    expect([stderr, code]).toEqual([stderr, 0])
    expect(readdirSync(folder)).toEqual([])
    Object.assign(next, at)
    cluster.env.TALOSCONFIG = newTalosconfig
    expect(statSync(newTalosconfig).mode & 0o777).toBe(0o600)
  }, 400_000)

  test('leaves no client of before: neither of the machines nor of Kubernetes', async () => {
    expect((await cluster.talosctl('--talosconfig', oldTalosconfig, '-n', first, 'version')).code).not.toBe(0)
    expect((await cluster.kubectl(['--kubeconfig', oldKubeconfig, 'get', 'nodes'])).code).not.toBe(0)
    succeeded(await cluster.kubectl(['get', 'nodes']))
  })

  test('pods that watch the API go on: a service that was made afterwards has its name', async () => {
    succeeded(await cluster.kubectl(['create', 'service', 'clusterip', 'afterwards', '--tcp=80']))
    // The rotation restarts them, and the node spreads them: pods that end are listed for a while.
    const items = await eventually(async () => {
      const pods = (await cluster.objects('get', 'pods', '-n', 'kube-system', '-l', 'k8s-app=kube-dns')).items
      const staying = pods.filter(({ metadata }) => !metadata.deletionTimestamp)
      expect(staying.map(isReady)).toEqual([true, true])
      return staying
    })
    for (const { status } of items)
      await eventually(async () => {
        const pid = cluster.initOf(controlPlane)
        expect(await cluster.resolve(pid, status.podIP!, 'afterwards.default.svc.cluster.local')).toEqual([expect.stringMatching(/^10\./)])
      }, 60)
  })

  test('every kubelet has a certificate of the new authority', async () => {
    for (const [name] of nodes)
      await eventually(async () => {
        const pem = readFileSync(inNode(name, readlinkSync(inNode(name, clientCertificate))), 'utf8')
        expect([name, signedBy(pem, next.k8s)]).toEqual([name, true])
      })
  })

  test('every node is ready, and reports it with its new certificate', async () => {
    const since = new Date()
    await eventually(async () => {
      const { items } = await cluster.objects('get', 'nodes')
      expect(items.map(isReady)).toEqual([true, true])
      const leases = (await cluster.objects('get', 'leases', '-n', 'kube-node-lease')).items as unknown as { spec: { renewTime: string } }[]
      expect(leases.map(({ spec }) => new Date(spec.renewTime) > since)).toEqual([true, true])
    })
    await everyNodeShowsLogs()
  })

  test('every node is reached with the new credentials over a new connection, and refuses the old', async () => {
    for (const [name, address] of nodes) {
      // Connections of before would hide what a new one meets.
      process.kill(cluster.processIn(name, '/usr/bin/apid')!, 'SIGKILL')
      await eventually(async () => succeeded(await cluster.talosctl('-e', address, '-n', address, 'version')), 30)
      succeeded(await cluster.talosctl('-e', first, '-n', address, 'version'))
      const refused = await cluster.talosctl('--talosconfig', oldTalosconfig, '-e', address, '-n', address, 'version')
      expect([name, refused.code]).not.toEqual([name, 0])
    }
  })

  test('what the control plane issues is of the new authority', () => {
    const folder = '/system/secrets/kubernetes'
    for (const file of ['kube-apiserver/apiserver.crt', 'kube-apiserver/apiserver-kubelet-client.crt'])
      expect([file, signedBy(readFileSync(inNode(controlPlane, `${folder}/${file}`), 'utf8'), next.k8s)]).toEqual([file, true])
    for (const component of ['kube-controller-manager', 'kube-scheduler']) {
      const kubeconfig = readFileSync(inNode(controlPlane, `${folder}/${component}/kubeconfig`), 'utf8')
      const [, crt = ''] = /client-certificate-data: (\S+)/.exec(kubeconfig) ?? []
      expect([component, signedBy(Buffer.from(crt, 'base64').toString(), next.k8s)]).toEqual([component, true])
    }
  })

  test('and both nodes are healthy', async () => {
    succeeded(await cluster.talosctl('-n', first, 'health', '--wait-timeout', '60s'))
  })
})

const clientCertificate = '/var/lib/kubelet/pki/kubelet-client-current.pem'

const inNode = (node: string, path: string) => `/proc/${cluster.initOf(node)}/root${path}`

function isReady({ status }: KubeItem): boolean {
  return status.conditions?.some(({ type, status: value }) => type === 'Ready' && value === 'True') ?? false
}

/** Logs are read from the kubelet, so an API server that shows them has verified it. */
async function everyNodeShowsLogs(): Promise<void> {
  for (const [name] of nodes)
    await eventually(async () => {
      const { items } = await cluster.objects(
        'get',
        'pods',
        '-n',
        'kube-system',
        '-l',
        'k8s-app=kube-proxy',
        '--field-selector',
        `spec.nodeName=${name}`,
      )
      const { stdout } = succeeded(await cluster.kubectl(['-n', 'kube-system', 'logs', '--tail=1', items[0]?.metadata.name ?? '']))
      expect(stdout).not.toBe('')
    })
}
