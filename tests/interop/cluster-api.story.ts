/**
 * The field's bootstrap provider of Cluster API against the API server of a cluster: the configurations that it generates are valid here as
 * they are, and bring machines from maintenance into a cluster. docs/cluster-api.md describes the same steps.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ConfigContainer } from '../../src/os/config/container.ts'
import { eventually, succeeded, TestCluster } from '../cluster/cluster.ts'
import { BootstrapProvider } from './cluster-api/bootstrap-provider.ts'

const manifest = join(import.meta.dir, '../../docs/manifests/cluster-api.yaml')
/** Machines of the manifest, and where they are. */
const machines = { 'controlplane-1': '10.82.0.2', 'worker-1': '10.82.0.3' }
const names = Object.keys(machines) as (keyof typeof machines)[]
const first = machines['controlplane-1']

interface Status {
  readonly ready?: boolean
  readonly dataSecretName?: string
  readonly conditions?: readonly { readonly type: string; readonly status: string; readonly reason?: string }[]
}

if (!Bun.which('go')) console.log("skipped: the field's bootstrap provider of Cluster API needs Go")

describe.skipIf(!Bun.which('go'))("the field's bootstrap provider of Cluster API", () => {
  let folder: string
  let management: TestCluster
  let workload: TestCluster
  let provider: BootstrapProvider

  /** kubectl on the management cluster. */
  const kubectl = async (...args: string[]) => succeeded(await management.kubectl(args)).stdout
  const statusOf = async (name: string): Promise<Status> =>
    JSON.parse(await kubectl('get', 'talosconfig', name, '-o', 'jsonpath={.status}'))
  const patchStatus = (kind: string, name: string, status: object) =>
    kubectl('patch', kind, name, '--subresource=status', '--type=merge', '-p', JSON.stringify({ status }))
  const secret = async (name: string, key: string) => {
    const text = await kubectl('get', 'secret', name, '-o', `jsonpath={.data.${key}}`)
    return Buffer.from(text, 'base64').toString()
  }
  /** A file with a value of a Secret. */
  const fileOf = async (name: string, key: string) => {
    const path = join(folder, `${name}.yaml`)
    writeFileSync(path, await secret(name, key), { mode: 0o600 })
    return path
  }

  beforeAll(async () => {
    folder = mkdtempSync('/var/tmp/ichor-cluster-api-')
    management = new TestCluster('capi')
    workload = new TestCluster('capi-machines')
    provider = new BootstrapProvider(folder)
    await provider.build()
    await management.create('--workers', '0', '--cidr', '10.81.0.0/24')
    const files = await provider.definitions()
    await kubectl('apply', '--server-side', ...files.flatMap((file) => ['-f', file]))
    await kubectl('wait', '--for=condition=Established', ...files.flatMap((file) => ['-f', file]))
    await provider.start(management.env.KUBECONFIG ?? '')
  }, 900_000)
  afterAll(async () => {
    await provider.stop()
    await Promise.all([management.end(), workload.end()])
    rmSync(folder, { recursive: true })
  }, 180_000)

  test('it generates a configuration for each machine once the infrastructure is ready', async () => {
    await kubectl('apply', '-f', manifest)
    // As the controllers of Cluster API do.
    for (const name of names) {
      const uid = await kubectl('get', 'machine', name, '-o', 'jsonpath={.metadata.uid}')
      const owner = { apiVersion: 'cluster.x-k8s.io/v1beta1', kind: 'Machine', name, uid, controller: true }
      await kubectl('patch', 'talosconfig', name, '--type=merge', '-p', JSON.stringify({ metadata: { ownerReferences: [owner] } }))
    }
    await eventually(async () => {
      const { conditions = [] } = await statusOf('worker-1')
      expect(conditions.find(({ type }) => type === 'DataSecretAvailable')?.reason).toBe('WaitingForClusterInfrastructure')
    })
    // As an infrastructure provider does.
    for (const name of names) await patchStatus('machine', name, { addresses: [{ type: 'InternalIP', address: machines[name] }] })
    await patchStatus('cluster', 'demo', { infrastructureReady: true })
    for (const name of names)
      await eventually(async () => expect(await statusOf(name)).toMatchObject({ ready: true, dataSecretName: `${name}-bootstrap-data` }))
  }, 180_000)

  test('each configuration is valid as it is, on machines of every kind', async () => {
    for (const name of names) {
      const text = await secret(`${name}-bootstrap-data`, 'value')
      const config = ConfigContainer.parse(text)
      for (const mode of ['metal', 'cloud', 'container'] as const) expect(config.validate(mode)).toEqual({ errors: [], warnings: [] })
      expect(config.toString()).toBe(text)
    }
  }, 60_000)

  test('machines in maintenance take them and become a cluster', async () => {
    await workload.create('--skip-injecting-config', '--cidr', '10.82.0.0/24')
    for (const name of names) {
      const file = await fileOf(`${name}-bootstrap-data`, 'value')
      await eventually(async () => succeeded(await workload.on(machines[name], 'apply-config', '--insecure', '--file', file)))
    }
    const client = ['--talosconfig', await fileOf('demo-talosconfig', 'talosconfig')]
    await eventually(async () => succeeded(await workload.on(first, 'bootstrap', ...client)))
    const kubeconfig = join(folder, 'kubeconfig')
    await eventually(async () => succeeded(await workload.on(first, 'kubeconfig', kubeconfig, '--no-merge', '--force', ...client)))
    expect(readFileSync(kubeconfig, 'utf8')).toContain(`https://${first}:6443`)
    const ready = ['wait', '--for=condition=Ready', '--timeout=10s', ...names.map((name) => `node/${name}`)]
    await eventually(async () => succeeded(await workload.kubectl(['--kubeconfig', kubeconfig, ...ready])), 240)
    for (const name of names) {
      const file = join(folder, `${name}-bootstrap-data.yaml`)
      const { stdout } = succeeded(await workload.on(machines[name], 'apply-config', '--dry-run', '--file', file, ...client))
      expect(stdout).toBe('Dry run: no changes.\n')
    }
  }, 600_000)
})
