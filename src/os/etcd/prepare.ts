/**
 * Prepares the start of etcd: decides whether this member continues with its data, bootstraps a cluster, recovers one from a
 * snapshot, or joins the others, and builds its command line accordingly.
 */
import { systemClock } from '../../cosi/clock.ts'
import type { Logger } from '../../cosi/log.ts'
import type { SpecOf } from '../../cosi/resource.ts'
import type { Store } from '../../cosi/store.ts'
import { RpcError } from '../../rpc/status.ts'
import { messageOf } from '../../wire/error-message.ts'
import { MachineType } from '../config/resources/machine-type.ts'
import type { Kernel } from '../kernel.ts'
import { dataFolder, etcdArguments, etcdUid, initialClusterOf, keptFolder, snapshotFile, urlsOf } from './arguments.ts'
import type { Bootstrap, BootstrapOrder } from './bootstrap.ts'
import type { EtcdClient } from './client.ts'
import { otherEtcd } from './endpoints.ts'
import type { EtcdSpec } from './resources/etcd-spec.ts'

type Spec = SpecOf<typeof EtcdSpec>

/** What preparing etcd needs. */
export interface EtcdPreparation {
  store: Store
  /** The settings to start with. */
  spec: Spec
  files: Pick<Kernel['files'], 'mkdirAll' | 'exists' | 'remove' | 'walk' | 'lchown' | 'list' | 'move'>
  log: Logger
  signal: AbortSignal
  bootstrap: Bootstrap
  /** Reports to the operator what the start is waiting for. */
  note?(message: string): void
  /** A client of the other members' etcd, when any is known. */
  others?(store: Store): EtcdClient | undefined
  /** Puts data aside that the member cannot use, where it may join again instead; resolves to whether it did. */
  putAside?(): Promise<boolean>
  /** Runs `etcdutl` with these arguments; rejects with its output when it fails. */
  etcdutl(args: string[]): Promise<void>
}

/** Retry interval of joining, in milliseconds. */
const retryDelay = 1000
/** How long joining is tried before the service counts as failed, in milliseconds. */
const joinLimit = 30 * 60_000

/** Prepares everything for etcd; resolves with the arguments after `etcd`. */
export async function prepareEtcd(preparation: EtcdPreparation): Promise<string[]> {
  const { store, spec, files, log, bootstrap } = preparation
  files.mkdirAll(dataFolder, { mode: 0o700, uid: etcdUid, gid: etcdUid })
  const own = initialClusterOf(spec.name, urlsOf(spec.advertisedAddresses, 2380))

  if (files.exists(`${dataFolder}/member`) && !(await preparation.putAside?.())) {
    bootstrap.done()
    return etcdArguments(spec, { state: 'existing', initialCluster: own })
  }
  // Machines of the old type `init` bootstrap a cluster by themselves, once; one whose data was put aside belongs to a cluster.
  const first = store.get(MachineType, 'machine-type')?.spec === 'init' && !files.exists(keptFolder)
  if (first && !bootstrap.order) bootstrap.give({ recover: false, skipHashCheck: false })

  const joined = await joinOrOrder(preparation)
  if (joined) {
    log.info('joining the etcd cluster', { initial_cluster: joined })
    return etcdArguments(spec, { state: 'existing', initialCluster: joined })
  }
  const order = bootstrap.order
  if (order?.recover) {
    log.info('recovering etcd from the snapshot')
    // A snapshot that cannot be restored needs another order, with another snapshot.
    bootstrap.done()
    await restore(preparation, own, order)
    return etcdArguments(spec, { state: 'existing', initialCluster: own })
  }
  // The order stays until etcd has answered: if it does not start with its settings, the next ones bootstrap again.
  log.info('bootstrapping a new etcd cluster')
  return etcdArguments(spec, { state: 'new', initialCluster: own })
}

/** The initial cluster to join with; undefined when the operator orders a bootstrap instead. */
async function joinOrOrder({
  store,
  spec,
  log,
  signal,
  note,
  bootstrap,
  others = otherEtcd,
}: EtcdPreparation): Promise<string | undefined> {
  const end = systemClock.deadline(joinLimit)
  let reported = ''
  while (!bootstrap.order) {
    const client = others(store)
    try {
      if (!client) throw new RpcError('Unavailable', 'no other control plane node is known yet')
      return await addSelf(client, spec)
    } catch (error) {
      const message = messageOf(error)
      if (end.over) throw new Error(`join the etcd cluster: ${message}`)
      if (message !== reported) {
        log.info('waiting for etcd bootstrap or join', { reason: message })
        note?.(`waiting to be bootstrapped, or to join: ${message}`)
      }
      reported = message
    } finally {
      client?.close()
    }
    await bootstrap.wait(retryDelay, signal)
  }
  return undefined
}

/** Makes this node a member of the cluster that answers; returns the initial cluster to start with. */
async function addSelf(client: EtcdClient, { name, advertisedAddresses }: Spec): Promise<string> {
  const peerURLs = urlsOf(advertisedAddresses, 2380)
  const before = await client.members()
  const left = before.find((member) => member.peerURLs.some((url) => peerURLs.includes(url)))
  // A member that ran and lost its data must not vote: it is removed and added as a new one.
  if (left?.name) await client.remove(left.ID)
  const waiting = left && !left.name
  const { id, members } = waiting ? { id: left.ID, members: before } : await client.addLearner(peerURLs)
  return members.map((member) => initialClusterOf(member.ID === id ? name : member.name, member.peerURLs)).join(',')
}

async function restore({ spec, files, etcdutl }: EtcdPreparation, initialCluster: string, order: BootstrapOrder): Promise<void> {
  if (!files.exists(snapshotFile)) throw new Error('recover etcd: no snapshot was uploaded: run `talosctl bootstrap --recover-from`')
  // In a folder beside, so that a restore that ends half way does not look like data; etcdutl creates it and refuses an existing one.
  const restored = `${dataFolder}.restored`
  await files.remove(restored)
  await etcdutl([
    'snapshot',
    'restore',
    snapshotFile,
    `--name=${spec.name}`,
    `--initial-cluster=${initialCluster}`,
    `--initial-advertise-peer-urls=${urlsOf(spec.advertisedAddresses, 2380).join(',')}`,
    `--data-dir=${restored}`,
    ...(order.skipHashCheck ? ['--skip-hash-check'] : []),
  ])
  for await (const { path } of files.walk(restored)) files.lchown(path, etcdUid, etcdUid)
  await files.remove(`${dataFolder}/member`)
  files.move(`${restored}/member`, `${dataFolder}/member`)
  await files.remove(restored)
  await files.remove(snapshotFile)
}
