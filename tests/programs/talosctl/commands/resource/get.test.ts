import { expect, test } from 'bun:test'
import { describe } from '../../../../../src/cosi/meta.ts'
import { Store } from '../../../../../src/cosi/store.ts'
import { resources as clusterResources } from '../../../../../src/os/cluster/resource-types.ts'
import { Member } from '../../../../../src/os/cluster/resources/member.ts'
import { MachineConfig } from '../../../../../src/os/config/resources/machine-config.ts'
import { resources as networkResources } from '../../../../../src/os/network/resource-types.ts'
import { readers, serverStream } from '../../../../../src/rpc/server/method.ts'
import { roleAccess } from '../../../../../src/rpc/server/resource-access.ts'
import { stateMethods } from '../../../../../src/rpc/server/state.ts'
import { RpcError } from '../../../../../src/rpc/status.ts'
import { talosctl, transcript } from '../../peer.ts'

const methods = stateMethods(roleAccess)

function members(): Store {
  let time = new Date('2026-11-21T09:45:36Z')
  const store = new Store({ now: () => time })
  describe(store, [...clusterResources, ...networkResources, MachineConfig], { cluster: '', meta: '', network: '', config: '' })
  const options = { owner: 'cluster.MemberController' }
  const os = 'Talos (v1.13.9)'
  store.create(
    Member,
    'talos-default-controlplane-1',
    {
      nodeId: 'ektZmoeQTrQ1gK1Kmge3p8emd231HD6ewavuVIbKrqfH',
      addresses: ['10.6.0.2'],
      hostname: 'talos-default-controlplane-1',
      machineType: 'controlplane',
      operatingSystem: os,
      controlPlane: { port: 6443 },
    },
    options,
  )
  time = new Date('2026-11-21T09:47:14Z')
  const worker = {
    nodeId: 'OigE6JQoRRhlMPQuCItqaiQ3GzeUhY9iWjv7eefIWOVC',
    addresses: ['10.6.0.3'],
    hostname: 'talos-default-worker-1',
    machineType: 'worker' as const,
    operatingSystem: os,
  }
  store.create(Member, 'talos-default-worker-1', worker, options)
  return store
}

test('a list is a table with the columns of its type', async () => {
  const outcome = await talosctl(methods, ['get', 'members'], { store: members() })
  expect(outcome).toEqual({ code: 0, stdout: transcript('members').stdout, stderr: '' })
})

test('every name of a type will do, in any case', async () => {
  for (const name of ['member', 'Members.cluster', 'MEMBERS.CLUSTER.TALOS.DEV']) {
    expect((await talosctl(methods, ['get', name], { store: members() })).stdout).toBe(transcript('members').stdout)
  }
})

test('a resource that is not there leaves the header and is reported', async () => {
  const recorded = transcript('get-missing')
  const { code, stdout, stderr } = await talosctl(methods, recorded.args, { store: members() })
  expect([code, stdout]).toEqual([1, recorded.stdout])
  expect(stderr).toMatch(/^1 error occurred:\n\t\* rpc error: code = NotFound desc = .*nope/)
})

test('an unknown type is refused with the nearest names', async () => {
  const { code, stderr } = await talosctl(methods, ['get', 'membrs'], { store: members() })
  expect(code).toBe(1)
  expect(stderr).toBe('rpc error: code = NotFound desc = resource "membrs" is not registered, did you mean "members" or "member"?\n')
})

test('an alias of several types is refused with their names', async () => {
  const { stderr } = await talosctl(methods, ['get', 'as'], { store: members() })
  expect(stderr).toContain('resource type "as" is ambiguous: it means addressspecs.net.talos.dev or addressstatuses.net.talos.dev')
})

test('yaml is as recorded, documents apart', async () => {
  expect((await talosctl(methods, ['get', 'members', '-o', 'yaml'], { store: members() })).stdout).toBe(yaml)
})

const yaml = `node: 10.6.0.2
metadata:
    namespace: cluster
    type: Members.cluster.talos.dev
    id: talos-default-controlplane-1
    version: 1
    owner: cluster.MemberController
    phase: running
    created: 2026-11-21T09:45:36Z
    updated: 2026-11-21T09:45:36Z
spec:
    nodeId: ektZmoeQTrQ1gK1Kmge3p8emd231HD6ewavuVIbKrqfH
    addresses:
        - 10.6.0.2
    hostname: talos-default-controlplane-1
    machineType: controlplane
    operatingSystem: Talos (v1.13.9)
    controlPlane:
        port: 6443
---
node: 10.6.0.2
metadata:
    namespace: cluster
    type: Members.cluster.talos.dev
    id: talos-default-worker-1
    version: 1
    owner: cluster.MemberController
    phase: running
    created: 2026-11-21T09:47:14Z
    updated: 2026-11-21T09:47:14Z
spec:
    nodeId: OigE6JQoRRhlMPQuCItqaiQ3GzeUhY9iWjv7eefIWOVC
    addresses:
        - 10.6.0.3
    hostname: talos-default-worker-1
    machineType: worker
    operatingSystem: Talos (v1.13.9)
`

test('json is one object a resource', async () => {
  const { stdout } = await talosctl(methods, ['get', 'members', 'talos-default-worker-1', '-o', 'json'], { store: members() })
  expect(JSON.parse(stdout)).toMatchObject({ node: '10.6.0.2', metadata: { version: 1 }, spec: { addresses: ['10.6.0.3'] } })
})

test('jsonpath prints what the template selects', async () => {
  const recorded = transcript('get-jsonpath')
  expect((await talosctl(methods, recorded.args, { store: members() })).stdout).toBe(recorded.stdout)
})

test('a spec that is one text is shown as a block', async () => {
  const store = members()
  store.create(MachineConfig, 'v1alpha1', 'version: v1alpha1\nmachine:\n    type: worker\n')
  const { stdout } = await talosctl(methods, ['get', 'mc', '-o', 'yaml'], { store })
  expect(stdout).toContain('\nspec: |\n    version: v1alpha1\n    machine:\n        type: worker\n')
  const { stdout: json } = await talosctl(methods, ['get', 'mc', '-o', 'jsonpath={.spec}'], { store })
  expect(json).toBe('version: v1alpha1\nmachine:\n    type: worker\n\n')
})

test('a watch shows what is there, then every change with a mark', async () => {
  const store = members()
  const stop = new AbortController()
  const { code, stdout } = await talosctl(methods, ['get', 'members', '-w'], {
    store,
    signal: stop.signal,
    seen(text) {
      if (text.includes('   -   ')) stop.abort()
      else if (text.includes('worker-1')) store.destroy(Member, 'talos-default-worker-1', { owner: 'cluster.MemberController' })
    },
  })
  const [header, ...rows] = transcript('members').stdout.split('\n').filter(Boolean)
  const mark = (row: string | undefined, sign: string) => row?.replace(/^(\S+ +)/, `$1${sign}   `)
  expect(code).toBe(0)
  expect(stdout.split('\n')).toEqual([mark(header, '*')!, mark(rows[0], '+')!, mark(rows[1], '+')!, mark(rows[1], '-')!, ''])
})

test('a watch of several nodes goes on without the one that is lost, and delays nothing for it', async () => {
  const stop = new AbortController()
  const failing = serverStream('cosi.resource.State/Watch', readers, async function* (request, context) {
    if (context.metadata.node?.[0] === '10.6.0.9') throw new RpcError('Unavailable', 'no route to it')
    const watch = methods.find(({ path }) => path === 'cosi.resource.State/Watch') ?? expect.unreachable()
    yield* (watch as { handle(request: unknown, context: unknown): AsyncIterable<never> }).handle(request, context)
  })
  const outcome = await talosctl([...methods.filter(({ path }) => path !== failing.path), failing], ['get', 'members', '-w'], {
    store: members(),
    nodes: ['10.6.0.9', '10.6.0.2'],
    signal: stop.signal,
    seen: (text) => {
      if (text.includes('worker-1')) stop.abort()
    },
  })
  expect(outcome.stdout.split('\n').length).toBe(4)
  expect(outcome).toMatchObject({
    code: 0,
    stderr: '10.6.0.9: rpc error: code = Unavailable desc = no route to it; the other nodes are still watched\n',
  })
})

test('a watch in yaml names the event', async () => {
  const stop = new AbortController()
  const seen = () => stop.abort()
  const { stdout } = await talosctl(methods, ['get', 'members', 'talos-default-worker-1', '-w', '-o', 'yaml'], {
    store: members(),
    signal: stop.signal,
    seen,
  })
  expect(stdout).toStartWith('node: 10.6.0.2\nevent: created\nmetadata:\n')
})

test('an unknown format is refused', async () => {
  const { code, stderr } = await talosctl(methods, ['get', 'members', '-o', 'xml'], { store: members() })
  expect([code, stderr]).toEqual([1, 'output format "xml" is not known: want table, yaml, json or jsonpath=<template>\n'])
})
