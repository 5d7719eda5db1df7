/** What a node promises beyond running pods: who may see and do what, certificates, names, networks, and what is refused. */

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { X509Certificate } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { tlsKey } from '../../src/pki/key.ts'
import { argumentsWithSecrets, openSecrets, secretTexts } from '../support/node-root.ts'
import { eventually, succeeded, TestCluster } from './cluster.ts'

const cluster = new TestCluster('promise')
const controlPlane = 'promise-controlplane-1'
const worker = 'promise-worker-1'
const [gateway, first, second] = ['10.63.0.1', '10.63.0.2', '10.63.0.3']
const requested: string[] = []
let web: ReturnType<typeof Bun.serve>

beforeAll(async () => {
  web = Bun.serve({
    port: 0,
    hostname: '0.0.0.0',
    fetch(request) {
      const { pathname, search } = new URL(request.url)
      requested.push(pathname + search)
      if (pathname === '/guest.yaml')
        return new Response('apiVersion: v1\nkind: ConfigMap\nmetadata: {name: guest, namespace: later}\ndata: {a: b}\n')
      return new Response('not here', { status: 404 })
    },
  })
  const address = (node: string) => `machine: {network: {interfaces: [{interface: eth0, addresses: [${node}/24]}]}}`
  await cluster.create(
    ...['--cidr', '10.63.0.0/24', '--memory-workers', '1GiB', '--registry-mirror', `mirrored.test=http://${gateway}:${web.port}`],
    ...['--nameservers', gateway, '--config-patch', everywhere],
    ...['--config-patch-control-plane', address('172.30.63.2'), '--config-patch-control-plane', onControlPlanes(web.port ?? 0)],
    ...['--config-patch-worker', address('172.30.63.3')],
  )
})
afterAll(async () => {
  await cluster.destroy()
  cluster.close()
  await web.stop(true)
})

const everywhere = JSON.stringify({
  machine: {
    kubelet: { nodeIP: { validSubnets: ['172.30.63.0/24'] }, extraArgs: { 'rotate-server-certificates': 'true' } },
    sysctls: { 'vm.max_map_count': '300000', 'net.ipv4.ip_unprivileged_port_start': '80' },
  },
})
const onControlPlanes = (port: number) =>
  JSON.stringify({
    cluster: {
      etcd: { advertisedSubnets: ['172.30.63.0/24'] },
      extraManifests: [`http://${gateway}:${port}/guest.yaml`],
      inlineManifests: [{ name: 'later', contents: 'apiVersion: v1\nkind: Namespace\nmetadata: {name: later}\n' }],
    },
  })

const on = (node: string, ...args: string[]) => cluster.talosctl('--nodes', node, ...args)
const outputOf = async (node: string, ...args: string[]) => succeeded(await on(node, ...args)).stdout

describe('two networks', () => {
  test('etcd and the kubelets use the one that was chosen', async () => {
    expect(await outputOf(first, 'etcd', 'members')).toMatch(/https:\/\/172\.30\.63\.2:2380 +https:\/\/172\.30\.63\.2:2379/)
    const { items } = await cluster.objects('get', 'nodes')
    const internal = items.flatMap(({ status }) => (status as { addresses?: { type: string; address: string }[] }).addresses ?? [])
    expect(
      internal
        .filter(({ type }) => type === 'InternalIP')
        .map(({ address }) => address)
        .sort(),
    ).toEqual(['172.30.63.2', '172.30.63.3'])
  })

  test('both are in the certificates, pods’ and services’ are in none', async () => {
    const { subjectAltName = '' } = await served(first, 50000)
    for (const address of [first, '172.30.63.2', '127.0.0.1']) expect(subjectAltName).toContain(`IP Address:${address}`)
    expect(subjectAltName).not.toMatch(/10\.(244|96)\./)
  })
})

describe('memory', () => {
  test('a node cannot have more than it was given', () => {
    const limits = ['cpu', 'memory']
      .flatMap((controller) => [join('/sys/fs/cgroup', controller), '/sys/fs/cgroup'])
      .flatMap((root) => groupsBelow(root))
    const limitOf = (group: string) =>
      ['memory.limit_in_bytes', 'memory.max'].map((file) => join(group, file)).filter((file) => existsSync(file))
    const found = Object.fromEntries(
      limits.flatMap((group) => limitOf(group).map((file) => [file.split('/').slice(-2, -1)[0], Number(readFileSync(file, 'utf8'))])),
    )
    expect(found).toMatchObject({ [controlPlane]: 2 * 1024 ** 3, [worker]: 1024 ** 3 })
  })

  test('a node offers pods no more than it was given', async () => {
    const { items } = await cluster.objects('get', 'nodes')
    const offered = items.map(({ metadata, status }) => [
      metadata.name,
      (status as { allocatable?: { memory?: string } }).allocatable?.memory,
    ])
    // The limit without what is reserved for the system, and the threshold of eviction.
    expect(Object.fromEntries(offered)).toEqual({ [controlPlane]: `${2048 - 512 - 100}Mi`, [worker]: `${1024 - 384 - 100}Mi` })
  })

  test('apid and trustd have 128 MiB', () => {
    for (const service of ['apid', 'trustd']) {
      const group = groupOf(cluster.processIn(controlPlane, `/usr/bin/${service}`) ?? 0)
      const file = ['memory.limit_in_bytes', 'memory.max'].map((name) => join(group, name)).find((path) => existsSync(path))
      expect(Number(readFileSync(file ?? '', 'utf8'))).toBe(128 * 1024 ** 2)
    }
  })
})

describe('secrets', () => {
  test.each([controlPlane, worker])('nothing on %s is readable by everybody, nothing is in arguments', (node) => {
    const secrets = secretTexts(readFileSync(join(cluster.state, 'promise', 'secrets.yaml'), 'utf8'))
    expect(secrets.length).toBeGreaterThan(10)
    const { looked, open } = openSecrets(`/proc/${cluster.initOf(node)}/root`, secrets)
    expect(looked).toBeGreaterThan(10)
    expect(open).toEqual([])
    expect(argumentsWithSecrets(cluster.processesIn(node), secrets)).toEqual([])
  })

  test('what is kept of the cluster on this host is its owner’s', () => {
    for (const path of [join(cluster.state, 'promise'), join(cluster.home, 'config'), join(cluster.home, 'kubeconfig')])
      expect(statSync(path).mode & 0o077).toBe(0)
  })
})

const refused = 7
/** Kinds of which the daemons that may read them see every resource. */
const whole = new Set(['NodeAddresses.net.talos.dev', 'Members.cluster.talos.dev'])

describe.each([
  ['apid', 50, { 'ApiCertificates.secrets.talos.dev': 'api', 'NodeAddresses.net.talos.dev': 'current' }],
  [
    'trustd',
    51,
    {
      'TrustdCertificates.secrets.talos.dev': 'trustd',
      'OSRootSecrets.secrets.talos.dev': 'os',
      'Members.cluster.talos.dev': 'promise-controlplane-1',
    },
  ],
] as [string, number, Record<string, string>][])('%s', (service, uid, allowed) => {
  test('may read its own and nothing else, and write nothing', async () => {
    const definitions = (await outputOf(first, 'get', 'resourcedefinitions', '--output', 'json'))
      .trim()
      .split(/\n(?=\{)/)
      .map((text) => JSON.parse(text).spec as { type: string; defaultNamespace: string })
    expect(definitions.length).toBeGreaterThan(150)
    const types = definitions.map(({ type, defaultNamespace }) => [defaultNamespace, type, allowed[type] ?? 'any'])
    const pid = cluster.processIn(controlPlane, `/usr/bin/${service}`)
    const child = Bun.spawn(
      ['nsenter', '-t', String(pid), '-m', '-p', '-n', '-S', String(uid), '-G', String(uid), '/usr/bin/ichor', '-e', probe],
      {
        // The binary is also the runtime it was compiled with.
        env: { BUN_BE_BUN: '1', HOME: '/tmp', PROBE_SOCKET: `/system/run/${service}/runtime.sock`, PROBE_TYPES: JSON.stringify(types) },
        stdout: 'pipe',
        stderr: 'pipe',
      },
    )
    const [stdout, stderr] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text(), child.exited])
    const answers = JSON.parse(stdout || `{"error":${JSON.stringify(stderr)}}`)
    expect(answers).toMatchObject({ uid, write: { Create: refused, Update: refused, Destroy: refused } })
    for (const [type, status] of Object.entries(answers.get)) expect([type, status]).toEqual([type, type in allowed ? 0 : refused])
    for (const [type, status] of Object.entries(answers.list))
      expect([type, status]).toEqual([type, whole.has(type) && type in allowed ? 0 : refused])
    expect(answers.other).not.toBe(0)
  })

  test('has no capability and cannot gain one', () => {
    const status = readFileSync(`/proc/${cluster.processIn(controlPlane, `/usr/bin/${service}`)}/status`, 'utf8')
    expect(status).toMatch(new RegExp(`^Uid:\\s+${uid}\\s`, 'm'))
    expect(status).toMatch(/^CapEff:\s+0+$/m)
    expect(status).toMatch(/^CapBnd:\s+0+$/m)
    expect(status).toMatch(/^NoNewPrivs:\s+1$/m)
  })
})

describe('certificates', () => {
  const [serverAuth, clientAuth] = ['1.3.6.1.5.5.7.3.1', '1.3.6.1.5.5.7.3.2']
  const days = (certificate: X509Certificate) =>
    Math.round((Date.parse(certificate.validTo) - Date.parse(certificate.validFrom)) / 86_400_000)

  test.each([
    ['apid', first, 50000, 1, [serverAuth], /CN=promise-controlplane-1/],
    ['a worker’s apid', second, 50000, 1, [serverAuth], /^CN=promise-worker-1$/],
    ['trustd', first, 50001, 1, [serverAuth], /CN=promise-controlplane-1/],
    ['the API server', first, 6443, 365, [serverAuth], /O=kube-master\nCN=kube-apiserver|CN=kube-apiserver\nO=kube-master/],
    ['etcd', '172.30.63.2', 2379, 3650, [serverAuth, clientAuth], /CN=promise-controlplane-1/],
    ['etcd’s peer', '172.30.63.2', 2380, 3650, [serverAuth, clientAuth], /CN=promise-controlplane-1/],
  ] as [string, string, number, number, string[], RegExp][])('of %s', async (_, host, port, lifetime, usage, subject) => {
    const certificate = await served(host, port)
    expect(days(certificate)).toBe(lifetime)
    expect(certificate.keyUsage).toEqual(usage)
    expect(certificate.subject).toMatch(subject)
    expect(certificate.ca).toBe(false)
  })

  test('the API server’s has the names it is called by', async () => {
    const { subjectAltName = '' } = await served(first, 6443)
    const names = ['kubernetes', 'kubernetes.default', 'kubernetes.default.svc', 'kubernetes.default.svc.cluster.local', 'localhost']
    for (const name of [...names, controlPlane]) expect(subjectAltName.split(', ')).toContain(`DNS:${name}`)
    for (const address of [gateway, first, '172.30.63.2', '127.0.0.1', '10.96.0.1'])
      expect(subjectAltName.split(', ')).toContain(`IP Address:${address}`)
  })

  test('kubelets configured to serve with certificates of the cluster have them', async () => {
    for (const [node, address] of [
      [controlPlane, '172.30.63.2'],
      [worker, '172.30.63.3'],
    ] as const) {
      const certificate = await eventually(async () => {
        const found = await served(address, 10250)
        if (!found.issuer.includes('O=kubernetes')) throw new Error(`${node} still signs for itself`)
        return found
      }, 60)
      expect(certificate.subject).toContain(`CN=system:node:${node}`)
      expect(certificate.subjectAltName).toBe(`DNS:${node}, IP Address:${address}`)
    }
  })
})

describe('names', () => {
  const name = 'host.test'
  const questions: string[] = []
  let resolver: Awaited<ReturnType<typeof nameServer>>
  beforeAll(async () => {
    resolver = await nameServer(gateway, (question) => questions.push(question))
  })
  afterAll(() => resolver.close())

  test('a node queries itself, and the answer is cached', async () => {
    for (const node of [controlPlane, worker]) {
      expect(readFileSync(`/proc/${cluster.initOf(node)}/root/etc/resolv.conf`, 'utf8')).toMatch(/^nameserver 127\.0\.0\.53$/m)
      expect(await resolve(cluster.initOf(node), '127.0.0.53', name)).toEqual(['192.0.2.77'])
    }
    const before = questions.filter((question) => question === name).length
    expect(await resolve(cluster.initOf(worker), '127.0.0.53', name)).toEqual(['192.0.2.77'])
    expect(questions.filter((question) => question === name).length).toBe(before)
  })

  test('pods are answered by the node they are on through CoreDNS, and directly', async () => {
    const pod = cluster.processIn(controlPlane, '/coredns ') ?? cluster.processIn(worker, '/coredns ') ?? 0
    expect(await resolve(pod, '169.254.116.108', name)).toEqual(['192.0.2.77'])
    expect(await resolve(pod, '10.96.0.10', name)).toEqual(['192.0.2.77'])
    expect(await resolve(pod, '10.96.0.10', 'kubernetes.default.svc.cluster.local')).toEqual(['10.96.0.1'])
  })
})

test('KubePrism leads every node to the API server', async () => {
  for (const node of [controlPlane, worker]) {
    const script = `const answer = await fetch('https://127.0.0.1:7445/version', { tls: { rejectUnauthorized: false } }); console.log(answer.headers.has('audit-id'))`
    expect(succeeded(await cluster.inNetworkOf(cluster.initOf(node), script)).stdout.trim()).toBe('true')
  }
})

test('manifests of the operator are applied, whatever they stand on', async () => {
  await eventually(async () => succeeded(await cluster.kubectl(['get', 'configmap', '--namespace', 'later', 'guest'])), 30)
})

test('a mirror is used before the registry', async () => {
  expect((await on(first, 'image', 'pull', 'mirrored.test/some/thing:1')).code).toBe(1)
  expect(requested.some((path) => path.startsWith('/v2/some/thing/manifests/1?ns=mirrored.test'))).toBe(true)
})

test('kernel parameters outside the node are reported as unsupported', async () => {
  const params = await outputOf(second, 'get', 'kernelparamstatus')
  expect(params).toMatch(/proc\.sys\.vm\.max_map_count .* true$/m)
  expect(params).toMatch(/proc\.sys\.net\.ipv4\.ip_unprivileged_port_start +\d+ +80 .* false$/m)
})

describe('refused in one line', () => {
  test.each([
    ['a second bootstrap', first, ['bootstrap'], 'the cluster is bootstrapped'],
    ['a bootstrap of a worker', second, ['bootstrap'], 'this is a worker: bootstrap one control plane node'],
    ['a service that is not in the table', first, ['service', 'sh', 'start'], 'sh'],
    ['stopping etcd by hand', first, ['service', 'etcd', 'stop'], 'etcd'],
  ] as [string, string, string[], string][])('%s', async (_, node, args, reason) => {
    const { code, stderr } = await on(node, ...args)
    expect(code).toBe(1)
    expect(stderr).toContain(reason)
    expect(stderr.trim().split('\n').length).toBeLessThanOrEqual(2)
  })

  const good = () => readFileSync(join(cluster.state, 'promise', 'nodes', controlPlane, 'machine.yaml'), 'utf8')
  test.each([
    ['an unknown key', () => good().replace(/^machine:\n/m, 'machine:\n  fooBar: 1\n'), 'machine.fooBar: unknown key "fooBar"'],
    ['a wrong type', () => `${good()}\n---\napiVersion: v1alpha1\nkind: TimeSyncConfig\nenabled: [1]\n`, 'enabled'],
    ['missing secrets', () => good().replace(/^ {2}ca:\n {4}crt: .*\n {4}key: .*\n/m, ''), 'generate the secrets'],
    ['a text cut off', () => `${good()}\n---\napiVersion: "v1alpha`, 'the text may be cut off'],
    ['a key cut off', () => good().slice(0, good().indexOf('key:', good().indexOf('serviceAccount:')) + 300), 'cut off'],
    ['10 MB', () => `machine:\n  sysctls:\n${'    a.b: "1"\n'.repeat(800_000)}`, 'larger than the limit'],
    ['10 MB of comments', () => `${good()}\n# ${'x'.repeat(10_000_000)}`, 'larger than the limit'],
    ['aliases of aliases', () => bomb(), 'unknown key'],
    ['depth', () => `machine: ${'{a: '.repeat(20_000)}1${'}'.repeat(20_000)}`, 'nested more than 64 levels deep'],
    ['no text', () => '\x00\x01\x02', 'control character'],
  ] as [string, () => string, string][])('a configuration with %s', async (name, text, reason) => {
    const file = join(cluster.home, `${name.replaceAll(' ', '-')}.yaml`)
    writeFileSync(file, text())
    const { code, stderr } = await on(first, 'apply-config', '--file', file)
    expect(code).toBe(1)
    expect(stderr).toContain(reason)
  })

  test('and the cluster is as it was', async () => {
    succeeded(await on(first, 'health', '--wait-timeout', '1m'))
  })
})

/** Nine of nine of nine …: 31 billion values when expanded. */
function bomb(): string {
  const lines = ['a0: &a0 [x, x, x, x, x, x, x, x, x]']
  for (let i = 1; i < 11; i++)
    lines.push(
      `a${i}: &a${i} [${Array(9)
        .fill(`*a${i - 1}`)
        .join(', ')}]`,
    )
  return `version: v1alpha1\n${lines.join('\n')}\n`
}

const probe = readFileSync(join(import.meta.dir, 'state-probe.js'), 'utf8')

/** The certificate a server shows to a node's own network, whether or not it turns the caller away afterwards. */
async function served(host: string, port: number): Promise<X509Certificate> {
  const talosconfig = Bun.YAML.parse(readFileSync(join(cluster.state, 'promise', 'talosconfig'), 'utf8')) as {
    contexts: Record<string, { crt: string; key: string }>
  }
  const { crt = '', key = '' } = talosconfig.contexts.promise ?? {}
  const pem = (text: string) => Buffer.from(text, 'base64').toString()
  const options = { host, port, rejectUnauthorized: false, cert: pem(crt), key: tlsKey(pem(key)) }
  const script = `
    const socket = require('node:tls').connect(${JSON.stringify(options)}, () => {
      console.log(socket.getPeerCertificate().raw.toString('base64'))
      process.exit(0)
    })
    socket.on('error', (error) => {
      console.error(String(error))
      process.exit(1)
    })`
  const { stdout } = succeeded(await cluster.inNetworkOf(cluster.initOf(controlPlane), script))
  return new X509Certificate(Buffer.from(stdout.trim(), 'base64'))
}

/** Addresses of a name, once the server gives them. */
const resolve = (pid: number, server: string, name: string) => eventually(() => cluster.resolve(pid, server, name), 30)

/** A name server that knows one address for every name. */
async function nameServer(hostname: string, heard: (name: string) => void) {
  return Bun.udpSocket({
    hostname,
    port: 53,
    socket: {
      data(socket, query, port, address) {
        const labels: string[] = []
        let at = 12
        for (let length = query[at] ?? 0; length > 0; length = query[at] ?? 0) {
          labels.push(query.subarray(at + 1, at + 1 + length).toString())
          at += 1 + length
        }
        heard(labels.join('.'))
        const question = query.subarray(12, at + 5)
        const isA = query.readUInt16BE(at + 1) === 1
        const head = Buffer.from([query[0] ?? 0, query[1] ?? 0, 0x85, 0x80, 0, 1, 0, isA ? 1 : 0, 0, 0, 0, 0])
        const record = Buffer.from([0xc0, 12, 0, 1, 0, 1, 0, 0, 1, 0x2c, 0, 4, 192, 0, 2, 77])
        socket.send(Buffer.concat([head, question, ...(isA ? [record] : [])]), port, address)
      },
    },
  })
}

function groupsBelow(root: string): string[] {
  if (!existsSync(root)) return []
  return readdirSync(root)
    .filter((name) => name.startsWith('ichor-'))
    .flatMap((name) => [controlPlane, worker].map((node) => join(root, name, node)))
    .filter((group) => existsSync(group))
}

/** The folder of a process's memory control group. */
function groupOf(pid: number): string {
  const lines = readFileSync(`/proc/${pid}/cgroup`, 'utf8').trim().split('\n')
  const [, controllers, path] =
    lines.map((line) => line.split(':')).find(([, names]) => names?.split(',').includes('memory')) ?? lines.at(-1)?.split(':') ?? []
  return join('/sys/fs/cgroup', controllers ?? '', path ?? '')
}
