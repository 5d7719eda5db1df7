import { afterAll, afterEach, beforeEach, expect, test } from 'bun:test'
import { createHash } from 'node:crypto'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { type Context, clientStream, type Method, serverStream, unary } from '../../../../../src/rpc/server/method.ts'
import { RpcError } from '../../../../../src/rpc/status.ts'
import { talosctl } from '../../peer.ts'

const admins = ['os:admin'] as const
const addresses = ['10.6.0.2', '10.6.0.3', '10.6.0.4']
const database = gunzipSync(readFileSync(join(import.meta.dir, '../../../../wire/bolt/etcd-3.6.16.snapshot.gz')))
const snapshot = Buffer.concat([database, ...(database.length % 512 === 0 ? [createHash('sha256').update(database).digest()] : [])])
const kubernetes = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => Response.json({ metadata: {} }) })
const kubeconfig = `apiVersion: v1
kind: Config
clusters: [{ name: c, cluster: { server: "http://127.0.0.1:${kubernetes.port}", certificate-authority-data: eA== } }]
users: [{ name: admin, user: { token: x } }]
contexts: [{ name: admin, context: { cluster: c, user: admin } }]
current-context: admin
`
let home = ''
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'restore-'))
  writeFileSync(join(home, 'db.snapshot'), snapshot)
})
afterEach(() => rmSync(home, { recursive: true, force: true }))
afterAll(() => kubernetes.stop(true))

interface Node {
  boot: number
  data: 'old' | 'none' | 'restored'
  etcd: 'Running' | 'Finished' | 'Preparing'
}

/** Three control planes that behave as ours. `fail` is called before each change, and may throw. */
function cluster(fail: (what: string) => void = () => {}) {
  const nodes = new Map(addresses.map((address): [string, Node] => [address, { boot: 100, data: 'old', etcd: 'Running' }]))
  const done: string[] = []
  let uploaded = Buffer.alloc(0)
  const nodeOf = ({ metadata }: Context): [string, Node] => {
    const [address = ''] = metadata.node ?? metadata.nodes ?? []
    const node = nodes.get(address)
    if (!node) throw new RpcError('Unavailable', `no route to "${address}"`)
    return [address, node]
  }
  const change = (what: string) => {
    fail(what)
    done.push(what)
  }
  const methods: Method[] = [
    unary('cosi.resource.State/Get', admins, ({ type }, context) => {
      const [, { boot }] = nodeOf(context)
      const config = 'version: v1alpha1\nmachine: {type: controlplane}\ncluster: {id: the-cluster}\n'
      const yamlSpec = type.startsWith('MachineConfigs') ? JSON.stringify(config) : 'stage: running\n'
      return { resource: { metadata: { id: 'x', created: { seconds: boot, nanos: 0 } }, spec: { yamlSpec } } }
    }),
    unary('ichor.v1.EtcdBackupService/Discard', admins, ({ dryRun }, context) => {
      const [address, node] = nodeOf(context)
      const data = node.data !== 'none'
      if (!dryRun) {
        change(`discard ${address}`)
        expect(node.data).not.toBe('restored')
        Object.assign(node, { data: 'none', etcd: 'Finished' })
      }
      return { messages: [{ data, size: 1000 }] }
    }),
    unary('machine.MachineService/Reboot', admins, (_, context) => {
      const [address, node] = nodeOf(context)
      // A member that is left could let another one join the old cluster.
      expect([...nodes.values()].map(({ data }) => data)).not.toContain('old')
      change(`reboot ${address}`)
      Object.assign(node, { boot: node.boot + 1, etcd: 'Preparing' })
      return { messages: [{ actorId: 'me' }] }
    }),
    clientStream('machine.MachineService/EtcdRecover', admins, async (requests, context) => {
      const [address] = nodeOf(context)
      uploaded = Buffer.concat((await Array.fromAsync(requests)).map(({ bytes }) => bytes))
      change(`upload ${address}`)
      return { messages: [{}] }
    }),
    unary('machine.MachineService/Bootstrap', admins, ({ recoverEtcd, recoverSkipHashCheck }, context) => {
      const [address] = nodeOf(context)
      const sent = recoverSkipHashCheck ? snapshot.subarray(0, -32) : snapshot
      expect([recoverEtcd, uploaded.equals(sent)]).toEqual([true, true])
      change(`bootstrap ${address}`)
      for (const node of nodes.values()) Object.assign(node, { data: 'restored', etcd: 'Running' })
      return { messages: [{}] }
    }),
    unary('machine.MachineService/ServiceList', admins, (_, context) => {
      const [, { etcd }] = nodeOf(context)
      return { messages: [{ services: [{ id: 'etcd', state: etcd, health: { healthy: etcd === 'Running' } }] }] }
    }),
    unary('machine.MachineService/EtcdMemberList', admins, () => ({
      messages: [{ members: addresses.map((hostname, id) => ({ id: String(id), hostname })) }],
    })),
    serverStream('machine.MachineService/Kubeconfig', admins, async function* () {
      yield { bytes: Buffer.from(kubeconfig) }
    }),
  ]
  return { nodes, done, methods }
}

const restore = (methods: readonly Method[], ...flags: string[]) =>
  talosctl(
    methods,
    ['etcd', 'restore', '--from', join(home, 'db.snapshot'), '--control-plane-nodes', addresses.join(), '--yes', ...flags],
    {
      env: { TALOS_HOME: home, HOME: home },
    },
  )
const steps = ['discard', 'reboot'].flatMap((what) => addresses.map((address) => `${what} ${address}`))
const everything = [...steps, `upload ${addresses[0]}`, `bootstrap ${addresses[0]}`]

test('all control planes discard their data before the first restarts, and one is bootstrapped', async () => {
  const { done, methods } = cluster()
  const { code, stderr } = await restore(methods)
  expect(stderr).toContain('etcd has 3 members\nKubernetes answers\netcd is restored\n')
  expect([code, readdirSync(join(home, 'restores'))]).toEqual([0, []])
  expect([...done.slice(0, 3).sort(), ...done.slice(3, 6).sort(), ...done.slice(6)]).toEqual(everything)
})

test.each(everything)('a restore that is interrupted before "%s" continues', async (at) => {
  let interrupted = false
  const { nodes, done, methods } = cluster((what) => {
    if (what !== at || interrupted) return
    interrupted = true
    throw new RpcError('Unavailable', 'connection lost')
  })
  const first = await restore(methods)
  expect([first.code === 0, existsSync(join(home, 'restores/the-cluster.snapshot'))]).toEqual([false, true])
  // The file that it was begun with is not needed any more.
  rmSync(join(home, 'db.snapshot'))
  const { code, stderr } = await restore(methods)
  expect(stderr).toContain('continuing the restore that was interrupted')
  expect(code).toBe(0)
  expect([...nodes.values()].every(({ data, boot }) => data === 'restored' && boot === 101)).toBe(true)
  expect(done.filter((what) => what.startsWith('bootstrap'))).toHaveLength(1)
})

test('a database without a hash is recovered without a check of it, also when the restore is continued', async () => {
  writeFileSync(join(home, 'db.snapshot'), snapshot.subarray(0, -32))
  let interrupted = false
  const { methods } = cluster((what) => {
    if (!what.startsWith('upload') || interrupted) return
    interrupted = true
    throw new RpcError('Unavailable', 'connection lost')
  })
  expect((await restore(methods, '--skip-hash-check')).code).not.toBe(0)
  const { code, stderr } = await restore(methods)
  expect([code, stderr]).toEqual([0, expect.stringContaining('etcd is restored')])
})

test('a control plane that does not answer stops a restore before anything is changed', async () => {
  const { nodes, done, methods } = cluster()
  nodes.delete('10.6.0.3')
  const { code, stderr } = await restore(methods)
  expect([code === 0, done]).toEqual([false, []])
  expect(stderr).toContain('10.6.0.3')
})
