/**
 * The keys of Kubernetes are replaced on a real cluster: the one that signs tokens of service accounts, and the one that encrypts
 * secrets in etcd, which is read from a snapshot. It waits until programs have read their new tokens. `bun tests/rotation/all.ts` runs
 * it.
 */

import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { keyIdIn } from '../../src/programs/talosctl/rotation/keys.ts'
import { decode } from '../../src/rpc/codec.ts'
import { messageType } from '../../src/rpc/schema.ts'
import { BoltDatabase } from '../../src/wire/bolt.ts'
import { eventually, succeeded, TestCluster } from '../cluster/cluster.ts'
import { figure } from '../support/figures.ts'

setDefaultTimeout(600_000)

const cluster = new TestCluster('keys')
const node = '10.74.0.2'

beforeAll(async () => {
  await cluster.create('--cidr', '10.74.0.0/24')
}, 600_000)
afterAll(async () => {
  await cluster.destroy()
  cluster.close()
})

async function config(): Promise<string> {
  return succeeded(await cluster.talosctl('-n', node, 'read', '/system/state/config.yaml')).stdout
}

const rotate = async (...args: string[]) => succeeded(await cluster.talosctl('rotate', ...args, '-n', node))

const secondsSince = (began: number) => `${Math.round((performance.now() - began) / 1000)} s`

/** The prefix of the value of every Secret as etcd has it, by its key. */
async function storedSecrets(): Promise<Map<string, string>> {
  const path = join(cluster.home, `snapshot-${Date.now()}`)
  succeeded(await cluster.talosctl('-n', node, 'etcd', 'snapshot', path))
  const bytes = readFileSync(path)
  const found = new Map<string, string>()
  new BoltDatabase((offset, length) => bytes.subarray(offset, offset + length)).eachEntry((bucket) => (revision, value) => {
    if (Buffer.from(bucket).toString() !== 'key') return
    const entry = decode(messageType('mvccpb.KeyValue'), Buffer.from(value)) as { key: Uint8Array; value: Uint8Array }
    const key = Buffer.from(entry.key).toString()
    if (!key.startsWith('/registry/secrets/')) return
    // A revision with something behind it deletes.
    if (revision.length > 17) found.delete(key)
    else found.set(key, Buffer.from(entry.value).toString('latin1').split(':').slice(0, 5).join(':'))
  })
  return found
}

describe('the key of the secretbox', () => {
  test('is replaced: etcd has every Secret under the new one, and each can be read', async () => {
    succeeded(await cluster.kubectl(['create', 'secret', 'generic', 'kept', '--from-literal=word=of-before']))
    const before = await storedSecrets()
    expect(before.size).toBeGreaterThan(1)
    expect(new Set(before.values())).toEqual(new Set(['k8s:enc:secretbox:v1:key2']))
    const [secret] = /secretboxEncryptionSecret: \S+/.exec(await config())!
    await rotate('secretbox-key')
    expect(await config()).toContain(secret)
    const began = performance.now()
    console.log((await rotate('secretbox-key', '--dry-run=false')).stderr)
    figure('keys', 'the key of the secretbox is replaced on one control plane', secondsSince(began))
    const after = await storedSecrets()
    expect([...after.keys()].sort()).toEqual([...before.keys()].sort())
    const [prefix = '', ...others] = new Set(after.values())
    expect(prefix).toMatch(/^k8s:enc:secretbox:v1:key-[0-9a-f]{12}$/)
    expect(others).toEqual([])
    expect(await config()).not.toContain(secret)
    expect(await config()).not.toContain('KubernetesKeysConfig')
    const word = async () => succeeded(await cluster.kubectl(['get', 'secret', 'kept', '-o', 'jsonpath={.data.word}'])).stdout
    expect(Buffer.from(await word(), 'base64').toString()).toBe('of-before')
    expect(readdirSync(join(cluster.home, 'rotations'))).toEqual([])
  })
})

describe('the key of service accounts', () => {
  const token = async () => succeeded(await cluster.kubectl(['create', 'token', 'default', '--duration=1h'])).stdout.trim()
  const call = async (bearer: string) =>
    cluster.kubectl(['--kubeconfig=/dev/null', '-s', server(), '--insecure-skip-tls-verify', '--token', bearer, 'auth', 'whoami'])
  const server = () => /server: (\S+)/.exec(readFileSync(cluster.env.KUBECONFIG!, 'utf8'))?.[1] ?? ''

  test('is replaced: tokens of before are accepted until it is dropped, and pods have new ones', async () => {
    const old = await token()
    expect((await call(old)).code).toBe(0)
    const began = performance.now()
    console.log((await rotate('service-account-key', '--dry-run=false')).stderr)
    figure('keys', 'the key of service accounts is replaced on one control plane, 75 s of it a pause', secondsSince(began))
    const now = await token()
    expect(keyIdIn(now)).not.toBe(keyIdIn(old))
    expect([(await call(old)).code, (await call(now)).code]).toEqual([1, 0])
    expect(await config()).not.toContain('KubernetesKeysConfig')
    expect(existsSync(join(cluster.home, 'rotations')) ? readdirSync(join(cluster.home, 'rotations')) : []).toEqual([])
  })

  test('pods that watch the API go on', async () => {
    succeeded(await cluster.kubectl(['create', 'service', 'clusterip', 'afterwards', '--tcp=80']))
    const { items } = await cluster.objects('get', 'pods', '-n', 'kube-system', '-l', 'k8s-app=kube-dns')
    for (const { status } of items)
      await eventually(async () => {
        const pid = cluster.initOf('keys-controlplane-1')
        expect(await cluster.resolve(pid, status.podIP!, 'afterwards.default.svc.cluster.local')).toEqual([expect.stringMatching(/^10\./)])
      }, 60)
    succeeded(await cluster.talosctl('-n', node, 'health', '--wait-timeout', '60s'))
  })
})
