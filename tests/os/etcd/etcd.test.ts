import { expect, setSystemTime, test } from 'bun:test'
import { createHash } from 'node:crypto'
import { Writable } from 'node:stream'
import { silent } from '../../../src/cosi/log.ts'
import { mountId, mountRequest, VolumeMountStatus } from '../../../src/os/block/resources/volume-mount.ts'
import { MachineType } from '../../../src/os/config/resources/machine-type.ts'
import { bootstrap } from '../../../src/os/etcd/api/bootstrap.ts'
import { etcdRecover } from '../../../src/os/etcd/api/snapshot.ts'
import { Bootstrap } from '../../../src/os/etcd/bootstrap.ts'
import type { Member } from '../../../src/os/etcd/client.ts'
import { hexId } from '../../../src/os/etcd/client.ts'
import { configEtcd } from '../../../src/os/etcd/controllers/config.ts'
import { renderEtcdPki } from '../../../src/os/etcd/controllers/pki.ts'
import { specEtcd } from '../../../src/os/etcd/controllers/spec.ts'
import { otherEndpoints } from '../../../src/os/etcd/endpoints.ts'
import { prepareEtcd } from '../../../src/os/etcd/prepare.ts'
import { EtcdSpec } from '../../../src/os/etcd/resources/etcd-spec.ts'
import { PKIStatus } from '../../../src/os/etcd/resources/pki-status.ts'
import { Endpoint } from '../../../src/os/k8s/resources/endpoint.ts'
import type { Mode } from '../../../src/os/kernel.ts'
import { HostnameStatus } from '../../../src/os/network/resources/hostname.ts'
import { NodeAddress } from '../../../src/os/network/resources/node-address.ts'
import { EtcdRootSecret } from '../../../src/os/secrets/resources/etcd-root-secret.ts'
import { EtcdSecret } from '../../../src/os/secrets/resources/etcd-secret.ts'
import { controlPlane, machineWith, memoryFiles, worker } from '../k8s/machine.ts'

async function etcdOf(config: string, addresses = ['10.5.0.2/24', '192.168.7.2/24']) {
  const os = machineWith([configEtcd, specEtcd], config)
  os.store.put(HostnameStatus, 'hostname', { hostname: 'cp-1', domainname: '' })
  os.store.put(NodeAddress, 'routed-no-k8s', { addresses, sortAlgorithm: 'v1' })
  await os.settled()
  return { ...os, spec: os.store.get(EtcdSpec, 'etcd')?.spec }
}

test('by default the first address is advertised, and etcd listens on every one', async () => {
  const { spec } = await etcdOf(controlPlane())
  expect(spec).toMatchObject({
    name: 'cp-1',
    advertisedAddresses: ['10.5.0.2'],
    listenPeerAddresses: ['0.0.0.0'],
    listenClientAddresses: ['0.0.0.0'],
  })
  expect((await etcdOf(worker())).spec).toBeUndefined()
})

test('subnets choose the addresses, and listening follows advertising unless configured', async () => {
  const { spec } = await etcdOf(controlPlane('', 'etcd:\n  advertisedSubnets: [192.168.0.0/16]'))
  expect(spec).toMatchObject({
    advertisedAddresses: ['192.168.7.2'],
    listenPeerAddresses: ['192.168.7.2'],
    listenClientAddresses: ['192.168.7.2', '127.0.0.1'],
  })
  const both = await etcdOf(controlPlane('', "etcd:\n  advertisedSubnets: ['!10.5.0.0/16']\n  listenSubnets: [0.0.0.0/0]"))
  expect(both.spec).toMatchObject({ advertisedAddresses: ['192.168.7.2'], listenPeerAddresses: ['10.5.0.2', '192.168.7.2'] })
  expect((await etcdOf(controlPlane('', 'etcd:\n  advertisedSubnets: [172.16.0.0/12]'))).spec).toBeUndefined()
})

test('certificates are readable by etcd only', async () => {
  const files = memoryFiles()
  const { store, settled } = machineWith([renderEtcdPki({ files })])
  const pair = { crt: btoa('CRT'), key: btoa('KEY') }
  store.put(EtcdRootSecret, 'etcd', { etcdCA: pair })
  store.put(EtcdSecret, 'etcd', { etcd: pair, etcdPeer: pair, etcdAdmin: pair, etcdAPIServer: pair })
  await settled()
  expect(store.get(PKIStatus, 'etcd')?.spec).toEqual({ ready: true, version: '1' })
  expect(files.owners.get('/system/secrets/etcd')).toMatchObject({ mode: 0o700, uid: 60 })
  expect(files.owners.get('/system/secrets/etcd/server.key')).toMatchObject({ mode: 0o400, uid: 60 })
  expect(files.contents.get('/system/secrets/etcd/ca.crt')).toBe('CRT')
  expect([...files.contents.keys()]).not.toContain('/system/secrets/etcd/ca.key')
})

test('other nodes are taken from Kubernetes first, without this node', async () => {
  const { store } = machineWith([])
  store.put(NodeAddress, 'accumulative', { addresses: ['10.5.0.2/24'], sortAlgorithm: 'v1' })
  store.put(Endpoint, 'controlplane', { addresses: [], hosts: ['cluster.example'] })
  store.put(Endpoint, 'discovery', { addresses: ['10.5.0.2', '10.5.0.3', 'fd00::3'], hosts: [] })
  store.put(Endpoint, 'kube-apiserver', { addresses: ['10.5.0.4'], hosts: [] })
  expect(otherEndpoints(store)).toEqual(['10.5.0.4:2379', '10.5.0.3:2379', '[fd00::3]:2379', 'cluster.example:2379'])
})

const member = (ID: string, name: string, ...peerURLs: string[]): Member => ({ ID, name, peerURLs, clientURLs: [], isLearner: false })

interface Prepared {
  data?: boolean
  others?: Member[]
  order?: { recover: boolean; skipHashCheck: boolean }
  /** The error of etcdutl. */
  failure?: string
}

async function prepared(options: Prepared = {}, files = { ...memoryFiles(), async *walk() {}, lchown: () => {} }) {
  const { store, spec } = await etcdOf(controlPlane())
  if (options.data) files.contents.set('/var/lib/etcd/member/wal', '')
  if (options.order?.recover) files.contents.set('/var/lib/etcd.snapshot', '')
  const bootstrap = new Bootstrap()
  if (options.order) bootstrap.give(options.order)
  const done: string[] = []
  const others = options.others && {
    members: async () => options.others,
    addLearner: async (peers: string[]) => {
      done.push(`add ${peers}`)
      return { id: '9', members: [...options.others!.filter(({ peerURLs }) => !peerURLs.includes(peers[0]!)), member('9', '', ...peers)] }
    },
    remove: async (id: string) => void done.push(`remove ${id}`),
    close: () => {},
  }
  const args = await prepareEtcd({
    store,
    bootstrap,
    spec: spec!,
    files: files as never,
    log: silent,
    signal: new AbortController().signal,
    others: () => others as never,
    etcdutl: async (given) => {
      done.push(given.slice(0, 2).join(' '))
      files.contents.set(`${given.find((one) => one.startsWith('--data-dir='))?.slice(11)}/member/wal`, '')
      if (options.failure) throw new Error(options.failure)
    },
  })
  const flag = (name: string) => args.find((argument) => argument.startsWith(`--${name}=`))?.slice(name.length + 3)
  return { state: flag('initial-cluster-state'), cluster: flag('initial-cluster'), done, order: bootstrap.order }
}

const own = 'cp-1=https://10.5.0.2:2380'

test('a member with data continues with it', async () => {
  expect(await prepared({ data: true })).toMatchObject({ state: 'existing', cluster: own, done: [] })
})

test('a bootstrap order starts a cluster, and stays until there is data: etcd may not start at once', async () => {
  const order = { recover: false, skipHashCheck: false }
  expect(await prepared({ order })).toMatchObject({ state: 'new', cluster: own, order })
  expect(await prepared({ order, data: true })).toMatchObject({ state: 'existing', order: undefined })
})

test('a bootstrap is refused where it would be lost: a machine that is being installed keeps nothing', async () => {
  const { store, settled } = machineWith([], controlPlane())
  store.put(MachineType, 'machine-type', 'controlplane')
  await settled()
  const started = new Bootstrap()
  const order = (mode: Mode) => {
    const { handle } = bootstrap({ files: memoryFiles(), mode }, started)
    return (handle as unknown as (request: object, context: object) => object)({ recoverEtcd: false }, { store, log: silent })
  }
  expect(() => order('metal')).toThrow('bootstrap: the node has no disk for etcd yet: ask again when it is installed')
  expect(started.order).toBeUndefined()
  store.put(VolumeMountStatus, mountId('EPHEMERAL'), { ...mountRequest('EPHEMERAL'), target: '/var' })
  expect(order('metal')).toEqual({ messages: [{}] })
  expect(() => order('container')).toThrow('this node is being bootstrapped already')
})

test('a recovery restores the snapshot first', async () => {
  expect(await prepared({ order: { recover: true, skipHashCheck: true } })).toMatchObject({ state: 'existing', done: ['snapshot restore'] })
})

test('a recovery that ends half way leaves no data that looks whole, and needs another order', async () => {
  const order = { recover: true, skipHashCheck: false }
  const files = { ...memoryFiles(), async *walk() {}, lchown: () => {} }
  await expect(prepared({ order, failure: 'etcdutl snapshot restore: no space left on device' }, files)).rejects.toThrow('no space left')
  expect(files.exists('/var/lib/etcd/member')).toBe(false)
  expect(await prepared({ order: { recover: false, skipHashCheck: false } }, files)).toMatchObject({ state: 'new', done: [] })
})

const snapshotBytes = (database: Uint8Array) => Buffer.concat([database, createHash('sha256').update(database).digest()])

test.each([
  ['whole', snapshotBytes(Buffer.alloc(1024, 1)), undefined],
  ['cut', snapshotBytes(Buffer.alloc(1024, 1)).subarray(0, 900), 'has no hash at its end: it is cut off'],
  ['copied from a data directory', Buffer.alloc(1024, 1), 'add --recover-skip-hash-check'],
  ['damaged', Buffer.concat([Buffer.alloc(512, 2), snapshotBytes(Buffer.alloc(512, 1))]), 'the snapshot is damaged: its hash is'],
])('a snapshot that is %s is judged by the hash that its upload showed', async (_, bytes, problem) => {
  const { store } = await etcdOf(controlPlane())
  const files = { ...memoryFiles(), openWrite: () => new Writable({ write: (_chunk, _encoding, done) => done() }) }
  files.contents.set('/var/lib/etcd.snapshot.part', '')
  const started = new Bootstrap()
  const call = (method: { handle: unknown }, request: unknown) =>
    (method.handle as (request: unknown, context: object) => unknown)(request, { store, log: silent })
  const chunks = async function* () {
    for (let at = 0; at < bytes.length; at += 100) yield { bytes: bytes.subarray(at, at + 100) }
  }
  await call(etcdRecover({ files: files as never, mode: 'container' }, started), chunks())
  const method = bootstrap({ files, mode: 'container' }, started)
  const recover = (recoverSkipHashCheck: boolean) => call(method, { recoverEtcd: true, recoverSkipHashCheck })
  if (problem) expect(() => recover(false)).toThrow(problem)
  else expect(recover(false)).toEqual({ messages: [{}] })
  if (problem) expect(recover(true)).toEqual({ messages: [{}] })
})

test('a new node joins as learner', async () => {
  const result = await prepared({ others: [member('1', 'cp-2', 'https://10.5.0.3:2380')] })
  expect(result).toMatchObject({ state: 'existing', cluster: `cp-2=https://10.5.0.3:2380,${own}`, done: ['add https://10.5.0.2:2380'] })
})

test('one that was added but never ran is used, one that ran and lost its data is replaced', async () => {
  const other = member('1', 'cp-2', 'https://10.5.0.3:2380')
  const waiting = await prepared({ others: [other, member('7', '', 'https://10.5.0.2:2380')] })
  expect(waiting).toMatchObject({ cluster: `cp-2=https://10.5.0.3:2380,${own}`, done: [] })
  const lost = await prepared({ others: [other, member('7', 'cp-1', 'https://10.5.0.2:2380')] })
  expect(lost).toMatchObject({ cluster: `cp-2=https://10.5.0.3:2380,${own}`, done: ['remove 7', 'add https://10.5.0.2:2380'] })
})

test.each([86_400_000, -86_400_000])('a node that waits to join goes on waiting when the wall clock is stepped by %d ms', async (step) => {
  const { store, spec } = await etcdOf(controlPlane())
  const files = { ...memoryFiles(), async *walk() {}, lchown: () => {} }
  const bootstrap = new Bootstrap()
  const preparing = prepareEtcd({
    store,
    bootstrap,
    spec: spec!,
    files: files as never,
    log: silent,
    signal: new AbortController().signal,
    others: () => {
      setSystemTime(new Date(Date.now() + step))
      return undefined
    },
    note: () => bootstrap.give({ recover: false, skipHashCheck: false }),
    etcdutl: async () => {},
  }).finally(() => setSystemTime())
  expect(await preparing).toContain('--initial-cluster-state=new')
})

test('member ids are printed in hexadecimal', () => {
  expect(hexId('2323169747073205614')).toBe('203d8e93873b856e')
  expect(hexId('1')).toBe('0000000000000001')
})
