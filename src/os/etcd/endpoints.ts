import type { Store } from '../../cosi/store.ts'
import { formatHostPort, hostPortOfUrl } from '../../wire/host-port.ts'
import { addressOnly } from '../../wire/prefix.ts'
import { pemOf } from '../k8s/public.ts'
import { Endpoint } from '../k8s/resources/endpoint.ts'
import { NodeAddress } from '../network/resources/node-address.ts'
import { EtcdRootSecret } from '../secrets/resources/etcd-root-secret.ts'
import { EtcdSecret } from '../secrets/resources/etcd-secret.ts'
import { type EtcdClient, type EtcdCredentials, etcdClient, type Member } from './client.ts'

/** The store's operations that finding etcd takes. */
export type StoreReader = Pick<Store, 'get' | 'list'>

/** The administrator's certificate; undefined while the secrets are not there. */
export function etcdCredentials(store: StoreReader): EtcdCredentials | undefined {
  const ca = store.get(EtcdRootSecret, 'etcd')?.spec.etcdCA
  const admin = store.get(EtcdSecret, 'etcd')?.spec.etcdAdmin
  if (!ca?.crt || !admin?.crt || !admin.key) return undefined
  return { ca: pemOf(ca.crt), cert: pemOf(admin.crt), key: pemOf(admin.key) }
}

/** Sources of node addresses, the best first: Kubernetes, cluster members, and the configuration, which may name a load balancer instead of a node. */
const sources = ['kube-apiserver', 'discovery', 'controlplane']

/** Where the etcd of other control plane nodes may answer: nodes seen in Kubernetes first, then members, then the configuration's. */
export const otherEndpoints = (store: StoreReader): string[] => addressesFrom(store, sources).map(endpointOf)

/** Addresses and names of other control plane nodes, from the sources that name nodes. */
export const nodeAddresses = (store: StoreReader): string[] => addressesFrom(store, sources.slice(0, 2))

function addressesFrom(store: StoreReader, order: readonly string[]): string[] {
  const known = order.flatMap((id) => store.get(Endpoint, id) ?? [])
  const own = new Set((store.get(NodeAddress, 'accumulative')?.spec.addresses ?? []).map(addressOnly))
  const addresses = known.flatMap(({ spec }) => [...spec.addresses, ...spec.hosts]).filter((address) => !own.has(address))
  return [...new Set(addresses)]
}

/** etcd's endpoint at an address. */
export const endpointOf = (address: string): string => formatHostPort(address, 2379)

/** A client of this node's own etcd. Throws when the secrets are not there yet. */
export function localEtcd(store: StoreReader): EtcdClient {
  return etcdClient(['127.0.0.1:2379'], needed(etcdCredentials(store)))
}

/** A client of the other nodes' etcd; undefined when none is known. Throws when the secrets are not there yet. */
export function otherEtcd(store: StoreReader): EtcdClient | undefined {
  const endpoints = otherEndpoints(store)
  return endpoints.length === 0 ? undefined : etcdClient(endpoints, needed(etcdCredentials(store)))
}

/** A client of the etcd at these endpoints. Throws when the secrets are not there yet. */
export function etcdClientOf(store: StoreReader, endpoints: readonly string[]): EtcdClient {
  return etcdClient(endpoints, needed(etcdCredentials(store)))
}

/** A client of one member, at the address where it serves clients. Throws when the secrets are not there yet. */
export function etcdAt(store: StoreReader, { clientURLs, peerURLs }: Pick<Member, 'clientURLs' | 'peerURLs'>): EtcdClient {
  const host = hostPortOfUrl(clientURLs[0] ?? peerURLs[0] ?? '')?.host
  if (host === undefined) throw new Error('the member of etcd has no address')
  return etcdClientOf(store, [endpointOf(host)])
}

function needed(credentials: EtcdCredentials | undefined): EtcdCredentials {
  if (!credentials) throw new Error('the certificates of etcd are not there yet')
  return credentials
}
