/** The state of etcd as its members report it: which of them answer, and whether they have a leader. */
import { within } from '../../timing/within.ts'
import { hostPortOfUrl } from '../../wire/host-port.ts'
import type { EtcdClient } from './client.ts'
import { endpointOf, etcdClientOf, localEtcd, nodeAddresses, type StoreReader } from './endpoints.ts'
import { majorityOf } from './majority.ts'
import { EtcdSpec } from './resources/etcd-spec.ts'

/** Timeout for one member, in milliseconds. */
const timeout = 2_000

/** The state that etcd reports. */
export interface EtcdView {
  readonly leader: boolean
  /** The voting members. */
  readonly members: readonly { readonly name: string; readonly address: string; readonly answers: boolean }[]
}

/**
 * Queries this node's etcd, then each member that it knows. If it does not answer, as while it starts without a majority, the
 * etcd of the other known control plane nodes is queried. Rejects when no other is known, or there are no certificates.
 */
export async function viewEtcd(store: StoreReader): Promise<EtcdView> {
  const others = nodeAddresses(store)
  try {
    return await viewThrough(store, localEtcd(store))
  } catch (error) {
    if (others.length === 0) throw error
  }
  try {
    return await viewFromAny(store, others)
  } catch {
    const { name = '', advertisedAddresses: [address = ''] = [] } = store.get(EtcdSpec, 'etcd')?.spec ?? {}
    return { leader: false, members: [{ name, address }, ...others.map(unnamed)].map((member) => ({ ...member, answers: false })) }
  }
}

const unnamed = (address: string) => ({ name: 'a control plane node', address })

/**
 * Whether the members would have a majority if this node's, which has these addresses, answered. True if no other node is known,
 * false if none of the others can be reached.
 */
export async function othersSuffice(store: StoreReader, own: readonly string[]): Promise<boolean> {
  const others = nodeAddresses(store)
  if (others.length === 0) return true
  try {
    return sufficientWithout(await viewFromAny(store, others), own)
  } catch {
    return false
  }
}

/** Whether the other members that answer make a majority together with the member of these addresses. */
export function sufficientWithout({ members }: EtcdView, own: readonly string[]): boolean {
  const others = members.filter(({ address }) => !own.includes(address))
  const votes = others.filter(({ answers }) => answers).length + (others.length < members.length ? 1 : 0)
  return votes >= majorityOf(members.length)
}

/** The state from the first of these nodes that answers; an unreachable one delays no other. */
const viewFromAny = (store: StoreReader, addresses: readonly string[]): Promise<EtcdView> =>
  Promise.any(addresses.map((address) => viewThrough(store, etcdClientOf(store, [endpointOf(address)]))))

async function viewThrough(store: StoreReader, client: EtcdClient): Promise<EtcdView> {
  try {
    const { leader } = await answered(client.status())
    const members = (await answered(client.members({ local: true }))).filter(({ isLearner }) => !isLearner)
    return {
      leader: leader !== '' && leader !== '0',
      members: await Promise.all(
        members.map(async ({ name, clientURLs, peerURLs }) => {
          const address = hostPortOfUrl(clientURLs[0] ?? peerURLs[0] ?? '')?.host ?? ''
          return { name: name || 'a member that never started', address, answers: address !== '' && (await answers(store, address)) }
        }),
      ),
    }
  } finally {
    client.close()
  }
}

async function answers(store: StoreReader, address: string): Promise<boolean> {
  const client = etcdClientOf(store, [endpointOf(address)])
  try {
    await answered(client.status())
    return true
  } catch {
    return false
  } finally {
    client.close()
  }
}

const answered = <T>(call: Promise<T>): Promise<T> => within(call, timeout, () => new Error(`no answer within ${timeout} ms`))
