/** The tools that operators of such clusters know, none of them ours, on a real cluster: openssl, etcdctl, ctr; and Kubernetes upgrades, seen by kubectl. */

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { etcdClient } from '../../src/os/etcd/client.ts'
import { builtTool, run } from '../etcd/etcd-tools.ts'
import { succeeded, TestCluster } from './cluster.ts'

const cluster = new TestCluster('tools')
const node = '10.66.0.2'
const scratch = mkdtempSync('/var/tmp/ichor-tools-')

let etcdctl = ''
let ctr = ''

beforeAll(async () => {
  await cluster.create('--workers', '0', '--cidr', '10.66.0.0/24')
  etcdctl = await builtTool(scratch, 'etcdctl', 'tests/interop/etcdctl', 'go.etcd.io/etcd/etcdctl/v3')
  ctr = await builtTool(scratch, 'ctr', 'rootfs/containerd', 'github.com/containerd/containerd/v2/cmd/ctr')
})
afterAll(async () => {
  await cluster.destroy()
  cluster.close()
  rmSync(scratch, { recursive: true, force: true })
})

/** Saves a file of the node in our folder. */
async function fetched(path: string): Promise<string> {
  const { stdout } = succeeded(await cluster.talosctl('-n', node, 'read', path))
  const target = join(scratch, path.replaceAll('/', '-'))
  writeFileSync(target, stdout, { mode: 0o600 })
  return target
}

test('openssl verifies apid’s certificate, and is not let in without one of its own', async () => {
  const config = Bun.YAML.parse(await Bun.file(join(cluster.home, 'config')).text()) as {
    context: string
    contexts: Record<string, { ca: string; crt: string; key: string }>
  }
  const context = config.contexts[config.context]!
  const file = (name: 'ca' | 'crt' | 'key') => {
    const path = join(scratch, `client.${name}`)
    const pem = Buffer.from(context[name], 'base64').toString().replaceAll('ED25519 PRIVATE KEY', 'PRIVATE KEY')
    writeFileSync(path, pem, { mode: 0o600 })
    return path
  }
  const [ca, crt, key] = [file('ca'), file('crt'), file('key')]
  const connect = ['openssl', 's_client', '-connect', `${node}:50000`, '-tls1_3', '-CAfile', ca, '-verify_ip', node, '-verify_return_error']
  const known = await run([...connect, '-cert', crt, '-key', key, '-alpn', 'h2'])
  expect(known.stdout).toContain('Verify return code: 0 (ok)')
  expect(known.stdout).toContain('ALPN protocol: h2')
  const stranger = await run([...connect, '-alpn', 'h2', '-ign_eof'])
  expect(`${stranger.stdout}${stranger.stderr}`).toMatch(/alert (certificate required|bad certificate|handshake failure|unknown ca)/)
}, 60_000)

/** The node's own credentials for etcd, as files. */
const etcdFiles = async () => ({
  ca: await fetched('/system/secrets/etcd/ca.crt'),
  cert: await fetched('/system/secrets/etcd/admin.crt'),
  key: await fetched('/system/secrets/etcd/admin.key'),
})
const etcdFlags = ({ ca, cert, key }: Awaited<ReturnType<typeof etcdFiles>>) => {
  return ['--endpoints', `https://${node}:2379`, '--cacert', ca, '--cert', cert, '--key', key, '--write-out', 'json']
}

test('etcdctl finds one healthy member under the node’s name', async () => {
  const flags = etcdFlags(await etcdFiles())
  const { members } = JSON.parse(succeeded(await run([etcdctl, ...flags, 'member', 'list'])).stdout)
  expect(members).toMatchObject([{ name: 'tools-controlplane-1', peerURLs: [`https://${node}:2380`] }])
  const [health] = JSON.parse(succeeded(await run([etcdctl, ...flags, 'endpoint', 'health'])).stdout)
  expect(health).toMatchObject({ health: true })
}, 60_000)

test('one node at a time has the claim to upgrade, over its restart, and etcdctl sees whose it is', async () => {
  const files = await etcdFiles()
  const flags = etcdFlags(files)
  const [ca, cert, key] = [files.ca, files.cert, files.key].map((file) => readFileSync(file, 'utf8')) as [string, string, string]
  const client = () => etcdClient([`${node}:2379`], { ca, cert, key })
  const [first, second] = [client(), client()]
  const seen = async () => JSON.parse(succeeded(await run([etcdctl, ...flags, 'get', 'ichor:test:claim'])).stdout).kvs
  try {
    expect(await Promise.all([first.claim('ichor:test:claim', 'a', 600), first.claim('ichor:test:claim', 'a', 600)])).toEqual(['a', 'a'])
    expect(await second.claim('ichor:test:claim', 'b', 600)).toBe('a')
    // Who restarts has another connection, and the same claim.
    first.close()
    expect(await seen()).toMatchObject([{ value: btoa('a') }])
    const again = client()
    expect(await again.claim('ichor:test:claim', 'a', 600)).toBe('a')
    again.close()
    // Nobody gives back what another has.
    await second.release('ichor:test:claim', 'b')
    expect(await second.claim('ichor:test:claim', 'b', 600)).toBe('a')
    await second.release('ichor:test:claim', 'a')
    expect(await seen()).toBeUndefined()
    // A process that never returns delays the others no longer than its time limit.
    expect(await second.claim('ichor:test:claim', 'a', 2)).toBe('a')
    const after = async (): Promise<string> => {
      const holder = await second.claim('ichor:test:claim', 'b', 600)
      return holder === 'b' ? holder : Bun.sleep(200).then(after)
    }
    expect(await after()).toBe('b')
    await second.release('ichor:test:claim', 'b')
  } finally {
    first.close()
    second.close()
  }
}, 60_000)

test('ctr sees the services in one namespace, the pods’ containers in another, and images that were never pulled', async () => {
  const root = `/proc/${cluster.initOf('tools-controlplane-1')}/root`
  const list = async (socket: string, namespace: string, kind: string) =>
    succeeded(await run([ctr, '--address', `${root}${socket}`, '--namespace', namespace, kind, 'ls', '-q']))
      .stdout.trim()
      .split('\n')
  expect(await list('/system/run/containerd/containerd.sock', 'system', 'tasks')).toEqual(expect.arrayContaining(['apid', 'trustd']))
  expect(await list('/run/containerd/containerd.sock', 'system', 'tasks')).toEqual(expect.arrayContaining(['etcd', 'kubelet']))
  expect((await list('/run/containerd/containerd.sock', 'k8s.io', 'tasks')).length).toBeGreaterThan(6)
  expect(await list('/run/containerd/containerd.sock', 'k8s.io', 'images')).toEqual(
    expect.arrayContaining(['registry.k8s.io/kube-apiserver:v1.36.3', 'registry.k8s.io/pause:3.10.1']),
  )
}, 60_000)

const upgrade = (...args: string[]) => cluster.talosctl('-n', node, 'upgrade-k8s', ...args)
const settings = ['--namespace', 'kube-system', 'get', 'configmap']
const inventory = 'talos-bootstrap-manifests-inventory'
const imageOf = async (pod: string) => {
  const path = 'jsonpath={.spec.containers[0].image} {.status.conditions[?(@.type=="Ready")].status}'
  return succeeded(await cluster.kubectl(['--namespace', 'kube-system', 'get', 'pod', pod, '-o', path])).stdout
}

test('an upgrade to the version that is there has nothing to do', async () => {
  const { stdout } = succeeded(await upgrade('--dry-run'))
  expect(stdout).not.toContain(' < ')
  expect(stdout).toEndWith('no changes: the cluster is at 1.36.3\n')
}, 60_000)

test('an upgrade replaces one image, restores what was deleted, removes what is no longer declared, and goes back', async () => {
  const root = `/proc/${cluster.initOf('tools-controlplane-1')}/root`
  const images = [ctr, '--address', `${root}/run/containerd/containerd.sock`, '--namespace', 'k8s.io', 'images']
  const [original, renamed] = ['registry.k8s.io/kube-scheduler:v1.36.3', 'registry.k8s.io/renamed/kube-scheduler:v1.36.3']
  succeeded(await run([...images, 'tag', original, renamed]))
  // Declared by an earlier configuration, and no longer by this one.
  succeeded(await cluster.kubectl(['--namespace', 'kube-system', 'create', 'configmap', 'left-over']))
  const entry = JSON.stringify({ data: { 'kube-system_left-over__ConfigMap': '' } })
  succeeded(await cluster.kubectl(['--namespace', 'kube-system', 'patch', 'configmap', inventory, '--type=merge', '-p', entry]))
  succeeded(await cluster.kubectl(['--namespace', 'kube-system', 'delete', 'configmap', 'kubeconfig-in-cluster']))

  const flags = ['--scheduler-image', 'registry.k8s.io/renamed/kube-scheduler']
  const preview = succeeded(await upgrade(...flags, '--dry-run'))
  expect(preview.stdout).toContain(`- cluster.scheduler.image: ${original}\n+ cluster.scheduler.image: ${renamed}\n`)
  expect(preview.stdout).toContain(' < Pruned v1.ConfigMap/kube-system/left-over\n')
  succeeded(await cluster.kubectl([...settings, 'left-over']))
  expect(await imageOf('kube-scheduler-tools-controlplane-1')).toBe(`${original} True`)

  const { stdout, stderr } = succeeded(await upgrade(...flags))
  expect(stdout).toContain(' < created v1.ConfigMap/kube-system/kubeconfig-in-cluster\n')
  expect(stdout).toContain(' < deleted v1.ConfigMap/kube-system/left-over\n')
  expect(stderr).toContain('kube-apiserver of tools-controlplane-1 (1/5): has it already, and is healthy\n')
  expect(await imageOf('kube-scheduler-tools-controlplane-1')).toBe(`${renamed} True`)
  succeeded(await cluster.kubectl([...settings, 'kubeconfig-in-cluster']))
  expect((await cluster.kubectl([...settings, 'left-over'])).stderr).toContain('NotFound')
  const listed = succeeded(await cluster.kubectl([...settings, inventory, '-o', 'jsonpath={.data}'])).stdout
  expect([listed.includes('left-over'), listed.includes('kube-system_kube-proxy_apps_DaemonSet')]).toEqual([false, true])

  succeeded(await upgrade('--rollback'))
  expect(await imageOf('kube-scheduler-tools-controlplane-1')).toBe(`${original} True`)
  expect((await upgrade('--rollback')).stderr).toContain('there is no upgrade of this cluster to go back from')
}, 180_000)
