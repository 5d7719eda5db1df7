/** The part of etcd's API that a node needs. Member ids are decimal text, since they use all of 64 bits. */

import { background } from '../../cosi/background.ts'
import { silent } from '../../cosi/log.ts'
import { type Channel, connect } from '../../rpc/client/channel.ts'
import { etcdserverpb as enums } from '../../rpc/enums.ts'
import type { etcdserverpb } from '../../rpc/messages.ts'
import { RpcError } from '../../rpc/status.ts'
import { pause } from '../../timing/pause.ts'

/** The certificates for mutual TLS with etcd: PEM. */
export interface EtcdCredentials {
  ca: string
  cert: string
  key: string
}

/** Kinds of alarms that etcd raises. */
export type AlarmKind = 'NOSPACE' | 'CORRUPT'

/** A member of the cluster. */
export type Member = etcdserverpb.Member

/** Calls the first of its endpoints that answers. All calls have deadlines and throw RpcError. */
export interface EtcdClient {
  members(options?: { local?: boolean }): Promise<Member[]>
  /** Adds a learner; returns its id and all members after the change. */
  addLearner(peerURLs: string[]): Promise<{ id: string; members: Member[] }>
  promote(id: string): Promise<void>
  remove(id: string): Promise<void>
  updatePeers(id: string, peerURLs: string[]): Promise<void>
  status(): Promise<etcdserverpb.StatusResponse>
  /** Resolves when a majority has agreed to a read; rejects otherwise. */
  quorum(signal?: AbortSignal): Promise<void>
  /** A snapshot of the database, in pieces. */
  snapshot(signal?: AbortSignal): AsyncGenerator<Uint8Array, void>
  alarms(): Promise<etcdserverpb.AlarmMember[]>
  /** Disarms all alarms, or those of one kind; returns the alarms there were. */
  disarm(only?: AlarmKind): Promise<etcdserverpb.AlarmMember[]>
  /** Discards the history up to a revision; resolves when its space is free inside the database. */
  compact(revision: number): Promise<void>
  /** The value of a key, read through a majority; undefined when there is none. */
  get(key: string): Promise<string | undefined>
  put(key: string, value: string): Promise<void>
  /** The hash of all keys and revisions of this member up to a revision. */
  hashKv(revision: number): Promise<etcdserverpb.HashKVResponse>
  defragment(): Promise<void>
  moveLeader(id: string): Promise<void>
  downgrade(action: keyof typeof enums.DowngradeRequest.DowngradeAction, version: string): Promise<string>
  /** Runs `act` while holding the mutex of this name; aborts `act`'s signal when the lock is lost. */
  withMutex<T>(name: string, act: (signal: AbortSignal) => Promise<T>, signal?: AbortSignal): Promise<T>
  /** Acquires a name for a holder that outlives this connection, for at most so many seconds; returns its current holder. */
  claim(name: string, holder: string, seconds: number): Promise<string>
  /** Releases a name that this holder has. */
  release(name: string, holder: string): Promise<void>
  close(): void
}

const short = { deadline: 10_000 }
/** Limits for what takes time in proportion to the database, in milliseconds. */
const compactionLimit = 120_000
const hashLimit = 120_000
export const defragmentationLimit = 300_000
/** How long a silent holder keeps its lock, and after which part of that time it no longer relies on it itself. */
const leaseSeconds = 8
const ownTrust = 0.6

/** Makes a client for endpoints such as `10.0.0.2:2379`; nothing is sent before the first call. */
export function etcdClient(endpoints: readonly string[], { ca, cert, key }: EtcdCredentials): EtcdClient {
  const channel = connect(
    endpoints.map((address) => ({ address, tls: { ca, cert, key }, defaultPort: 2379 })),
    { connectTimeout: 5000 },
  )
  return {
    members: async ({ local = false } = {}) =>
      (await channel.unary('etcdserverpb.Cluster/MemberList', { linearizable: !local }, short)).members,
    async addLearner(peerURLs) {
      const { member, members } = await channel.unary('etcdserverpb.Cluster/MemberAdd', { peerURLs, isLearner: true }, short)
      if (!member) throw new RpcError('Internal', 'etcd added a member but did not say which')
      return { id: member.ID, members }
    },
    promote: async (ID) => void (await channel.unary('etcdserverpb.Cluster/MemberPromote', { ID }, short)),
    remove: async (ID) => void (await channel.unary('etcdserverpb.Cluster/MemberRemove', { ID }, short)),
    updatePeers: async (ID, peerURLs) => void (await channel.unary('etcdserverpb.Cluster/MemberUpdate', { ID, peerURLs }, short)),
    status: () => channel.unary('etcdserverpb.Maintenance/Status', {}, short),
    async quorum(signal) {
      await channel.unary('etcdserverpb.KV/Range', { key: Buffer.from('health'), countOnly: true }, { ...short, signal })
    },
    async *snapshot(signal) {
      for await (const { blob } of channel.serverStream('etcdserverpb.Maintenance/Snapshot', {}, { signal }))
        if (blob.length > 0) yield blob
    },
    alarms: async () =>
      (await channel.unary('etcdserverpb.Maintenance/Alarm', { action: enums.AlarmRequest.AlarmAction.GET }, short)).alarms,
    async disarm(only) {
      const { GET, DEACTIVATE } = enums.AlarmRequest.AlarmAction
      const all = (await channel.unary('etcdserverpb.Maintenance/Alarm', { action: GET }, short)).alarms
      const alarms = only ? all.filter(({ alarm }) => alarm === enums.AlarmType[only]) : all
      for (const { memberID, alarm } of alarms)
        await channel.unary('etcdserverpb.Maintenance/Alarm', { action: DEACTIVATE, memberID, alarm }, short)
      return alarms
    },
    compact: async (revision) =>
      void (await channel.unary('etcdserverpb.KV/Compact', { revision, physical: true }, { deadline: compactionLimit })),
    async get(key) {
      const { kvs } = await channel.unary('etcdserverpb.KV/Range', { key: Buffer.from(key) }, short)
      return kvs[0] && Buffer.from(kvs[0].value).toString()
    },
    async put(key, value) {
      const put = { requestPut: { key: Buffer.from(key), value: Buffer.from(value) } }
      await channel.unary('etcdserverpb.KV/Txn', { success: [put] }, short)
    },
    hashKv: (revision) => channel.unary('etcdserverpb.Maintenance/HashKV', { revision }, { deadline: hashLimit }),
    // Defragmentation takes time in proportion to the size of the database.
    defragment: async () => void (await channel.unary('etcdserverpb.Maintenance/Defragment', {}, { deadline: defragmentationLimit })),
    moveLeader: async (targetID) => void (await channel.unary('etcdserverpb.Maintenance/MoveLeader', { targetID }, short)),
    async downgrade(action, version) {
      const number = enums.DowngradeRequest.DowngradeAction[action]
      return (await channel.unary('etcdserverpb.Maintenance/Downgrade', { action: number, version }, short)).version
    },
    withMutex: (name, act, signal) => withMutex(channel, name, act, signal),
    claim: (name, holder, seconds) => claim(channel, name, holder, seconds),
    async release(name, holder) {
      const { EQUAL } = enums.Compare.CompareResult
      const key = Buffer.from(name)
      await channel.unary(
        'etcdserverpb.KV/Txn',
        {
          compare: [{ target: enums.Compare.CompareTarget.VALUE, result: EQUAL, key, value: Buffer.from(holder) }],
          success: [{ requestDeleteRange: { key } }],
        },
        short,
      )
    },
    close: () => channel.close(),
  }
}

/** A key that is created only if absent and expires with its lease; the holder's own key is replaced. */
async function claim(channel: Channel, name: string, holder: string, seconds: number): Promise<string> {
  const { CREATE, VALUE } = enums.Compare.CompareTarget
  const { EQUAL } = enums.Compare.CompareResult
  const key = Buffer.from(name)
  const value = Buffer.from(holder)
  const { ID: lease } = await channel.unary('etcdserverpb.Lease/LeaseGrant', { TTL: seconds }, short)
  const put = { requestPut: { key, value, lease } }
  for (const compare of [
    { target: CREATE, result: EQUAL, key, createRevision: 0 },
    { target: VALUE, result: EQUAL, key, value },
  ]) {
    const { succeeded } = await channel.unary('etcdserverpb.KV/Txn', { compare: [compare], success: [put] }, short)
    if (succeeded) return holder
  }
  await channel.unary('etcdserverpb.Lease/LeaseRevoke', { ID: lease }, short)
  const { kvs } = await channel.unary('etcdserverpb.KV/Range', { key }, short)
  return kvs[0] ? Buffer.from(kvs[0].value).toString() : 'another node, which has just let go'
}

/** The gRPC path under which every member reports its own id. */
export const memberIdOf = async (client: EtcdClient): Promise<string> => (await client.status()).header?.memberId ?? '0'

/** A member's id in hexadecimal, as etcd's tools print it. */
export const hexId = (id: string): string => BigInt(id).toString(16).padStart(16, '0')

/**
 * The mutex of etcd's own client library: a key under the mutex's name that lives as long as a lease. The holder is the
 * creator of the oldest key. Waiting polls instead of watching, for it is rare and short.
 */
async function withMutex<T>(channel: Channel, name: string, act: (signal: AbortSignal) => Promise<T>, outer?: AbortSignal): Promise<T> {
  const began = performance.now()
  const { ID: lease } = await channel.unary('etcdserverpb.Lease/LeaseGrant', { TTL: leaseSeconds }, { ...short, signal: outer })
  const lost = new AbortController()
  const signal = outer ? AbortSignal.any([outer, lost.signal]) : lost.signal
  const renewal = keepAlive(channel, lease, began, lost)
  try {
    const prefix = Buffer.from(`${name}/`)
    const key = Buffer.from(`${name}/${BigInt(lease).toString(16)}`)
    const { CREATE } = enums.Compare.CompareTarget
    const { succeeded, responses, header } = await channel.unary(
      'etcdserverpb.KV/Txn',
      {
        compare: [{ target: CREATE, result: enums.Compare.CompareResult.EQUAL, key, createRevision: 0 }],
        success: [{ requestPut: { key, value: Buffer.alloc(0), lease } }],
        failure: [{ requestRange: { key } }],
      },
      { ...short, signal },
    )
    const mine = succeeded ? (header?.revision ?? 0) : (responses[0]?.responseRange?.kvs[0]?.createRevision ?? 0)
    for (;;) {
      const before = { key: prefix, rangeEnd: following(prefix), maxCreateRevision: mine - 1, keysOnly: true }
      // The count is of all keys under the prefix, whatever the limits on revisions.
      const { kvs } = await channel.unary('etcdserverpb.KV/Range', before, { ...short, signal })
      if (kvs.length === 0) break
      await pause(250, signal)
      signal.throwIfAborted()
    }
    return await act(signal)
  } finally {
    clearInterval(renewal)
    // Revoking the lease deletes the key; should that fail, the lease expires.
    await channel.unary('etcdserverpb.Lease/LeaseRevoke', { ID: lease }, { deadline: 2000 }).catch(() => undefined)
  }
}

/** Renews a lease. The lock counts as lost well before etcd may give it to another, measured from the start of the last renewal. */
function keepAlive(channel: Channel, lease: string, granted: number, lost: AbortController): ReturnType<typeof setInterval> {
  const limit = leaseSeconds * 1000 * ownTrust
  let renewed = granted
  let renewing = false
  let problem: unknown = new Error('etcd does not answer')
  const renew = async () => {
    const began = performance.now()
    renewing = true
    try {
      for await (const { TTL } of channel.bidi('etcdserverpb.Lease/LeaseKeepAlive', [{ ID: lease }], { deadline: limit / 2 })) {
        if (TTL <= 0) return lost.abort(new Error('the lease has ended'))
        renewed = began
      }
    } catch (error) {
      problem = error
    } finally {
      renewing = false
    }
  }
  return setInterval(() => {
    const since = performance.now() - renewed
    if (since > limit) lost.abort(problem)
    else if (!renewing && since > limit / 4) background(renew(), silent) // it records its own failure
  }, 250)
}

/** The first key after all that start with a prefix. */
function following(prefix: Uint8Array): Uint8Array {
  const end = Buffer.from(prefix)
  for (let i = end.length - 1; i >= 0; i--) {
    const last = end.readUInt8(i)
    if (last === 0xff) continue
    end.writeUInt8(last + 1, i)
    return end.subarray(0, i + 1)
  }
  return Buffer.of(0)
}
