/**
 * States that keep a node from working although each setting is valid in itself, made on a real cluster one after the other:
 * `explain` names the true cause, `health` gives it too, and the way back that is named leads back.
 */

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { newCA, toBase64 } from '../../src/pki/certificate.ts'
import { eventually, succeeded, TestCluster } from './cluster.ts'

const cluster = new TestCluster('states')
let controlPlane = ''
let worker = ''

beforeAll(async () => {
  await cluster.create()
  ;[controlPlane = '', worker = ''] = cluster.nodes().map(({ ip }) => ip)
}, 300_000)
afterAll(() => cluster.end(), 60_000)

const on = (node: string, ...args: string[]) => cluster.on(node, ...args)
const explained = async (node: string) => succeeded(await on(node, 'explain')).stdout
const well = (node: string) => eventually(async () => expect(await explained(node)).toMatch(/^the machine is healthy$/m))
const newest = async (node: string) =>
  succeeded(await on(node, 'config-history'))
    .stdout.split('\n')[1]
    ?.trim()
    .split(/ +/)[1] ?? ''

/** Applies a patch, waits until the first line of the node's status is the expected one, and returns the whole status. */
async function broken(node: string, section: object, first: RegExp, ...flags: string[]): Promise<string> {
  succeeded(await on(node, 'patch', 'mc', '-p', JSON.stringify(section), ...flags))
  return becomes(node, first)
}

const becomes = (node: string, first: RegExp) =>
  eventually(async () => {
    const text = await explained(node)
    expect(text.split('\n')[0]).toMatch(first)
    return text
  })

/** What `health` gives as the node's own reason. */
async function unhealthy(node: string): Promise<string> {
  const { code, stderr } = await on(controlPlane, 'health', '--wait-timeout', '3s')
  expect(code).toBe(1)
  return stderr.split('\n').find((line) => line.startsWith(`${node}: `)) ?? stderr
}

async function back(node: string, id: string): Promise<void> {
  succeeded(await on(node, 'config-history', 'restore', id, '--force'))
  await well(node)
}

test('an endpoint whose name nobody knows, while the node still finds the control plane by itself', async () => {
  const before = await newest(worker)
  const endpoint = 'https://no-such-name.invalid:6443'
  const text = await broken(worker, { cluster: { controlPlane: { endpoint } } }, /cluster endpoint https:\/\/no-such-name\.invalid:6443: /)
  expect(text).toContain('check cluster.controlPlane.endpoint')
  expect(text).toContain('ENOTFOUND no-such-name.invalid')
  await back(worker, before)
}, 120_000)

test('a mount of the kubelet that cannot be made', async () => {
  await eventually(async () =>
    expect(succeeded(await on(worker, 'read', '/system/state/component-settings.json')).stdout).toContain('"good"'),
  )
  const extraMounts = [{ type: 'ext4', source: '/dev/nowhere', destination: '/data', options: ['ro'] }]
  const text = await broken(
    worker,
    { machine: { kubelet: { extraMounts } } },
    /component kubelet: it does not start with its new settings \(machine\.kubelet\.extraMounts.*error mounting "\/dev\/nowhere"/,
  )
  const [, restore = ''] = /go back with "talosctl config-history restore (\d+)"/.exec(text) ?? []
  await back(worker, restore)
}, 120_000)

test('a file that only the start can show to be impossible', async () => {
  const before = await newest(worker)
  const files = [{ path: '/var/lib/kubelet', op: 'create', permissions: '0o600', content: 'x' }]
  const first = /diagnostic machine-files: .*correct machine\.files: file "\/var\/lib\/kubelet": .*EISDIR/
  await broken(worker, { machine: { files } }, first)
  expect(await unhealthy(worker)).toMatch(first)
  await back(worker, before)
}, 180_000)

test('two members of one name: both name the other', async () => {
  const before = await newest(worker)
  const hostname = 'states-controlplane-1'
  const document = { apiVersion: 'v1alpha1', kind: 'HostnameConfig', hostname, auto: 'off' }
  const twin = (type: string, address: string) =>
    new RegExp(`host name ${hostname}: another ${type} member \\(${address}\\) has the same host name`)
  await broken(worker, document, twin('controlplane', controlPlane), '--force')
  await becomes(controlPlane, twin('worker', worker))
  // Discovery knows members by their names, so one of the two hides the other from `health`.
  const { code, stderr } = await on(controlPlane, 'health', '--wait-timeout', '3s')
  expect([code, stderr]).toEqual([
    1,
    expect.stringMatching(/^10\S+: host name states-controlplane-1: another \w+ member \(\S+\) has the same host name/m),
  ])
  await back(worker, before)
  await well(controlPlane)
}, 180_000)

test('an authority that is not the one of the cluster', async () => {
  const { crt } = newCA({ subject: { organizations: ['another-cluster'] }, kind: 'ecdsa' })
  const text = await broken(
    worker,
    { cluster: { ca: { crt: toBase64(crt), key: '' } } },
    /certificate of the API server at https:\/\/.*another authority "O=kubernetes", which is not among the accepted authorities \(cluster\.ca, cluster\.acceptedCAs\)/,
    '--force',
  )
  const [, restore = ''] = /go back with "talosctl config-history restore (\d+)"/.exec(text) ?? []
  await back(worker, restore)
}, 180_000)
