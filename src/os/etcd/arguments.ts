import type { SpecOf } from '../../cosi/resource.ts'
import { formatHostPort } from '../../wire/host-port.ts'
import { buildArguments, denied, overwrite } from '../k8s/public.ts'
import type { EtcdSpec } from './resources/etcd-spec.ts'

/** Where etcd keeps its data. */
export const dataFolder = '/var/lib/etcd'

/** Where data is kept that the member could not use. */
export const keptFolder = '/var/lib/etcd.damaged'

/** Where an uploaded snapshot is kept until the recovery. */
export const snapshotFile = '/var/lib/etcd.snapshot'

/** Where etcd's keys and certificates are kept. */
export const secretsFolder = '/system/secrets/etcd'

/** The user etcd runs as. */
export const etcdUid = 60

/** How a member starts: as the first of a new cluster, or as part of an existing one. */
export interface Beginning {
  state: 'new' | 'existing'
  /** `name=https://address:2380,…` */
  initialCluster: string
}

/** `https://` addresses of one port. */
export const urlsOf = (addresses: readonly string[], port: number): string[] =>
  addresses.map((address) => `https://${formatHostPort(address, port)}`)

/** `name=url` of one member, as etcd lists its initial cluster. */
export const initialClusterOf = (name: string, peerURLs: readonly string[]): string => peerURLs.map((url) => `${name}=${url}`).join(',')

/** etcd's command line after its name. */
export function etcdArguments(spec: SpecOf<typeof EtcdSpec>, { state, initialCluster }: Beginning): string[] {
  return buildArguments(
    'etcd',
    {
      name: denied(spec.name),
      'auto-tls': denied('false'),
      'peer-auto-tls': denied('false'),
      'data-dir': denied(dataFolder),
      'listen-peer-urls': denied(urlsOf(spec.listenPeerAddresses, 2380)),
      'listen-client-urls': denied(urlsOf(spec.listenClientAddresses, 2379)),
      'client-cert-auth': denied('true'),
      'cert-file': denied(`${secretsFolder}/server.crt`),
      'key-file': denied(`${secretsFolder}/server.key`),
      'trusted-ca-file': denied(`${secretsFolder}/ca.crt`),
      'peer-client-cert-auth': denied('true'),
      'peer-cert-file': denied(`${secretsFolder}/peer.crt`),
      'peer-key-file': denied(`${secretsFolder}/peer.key`),
      'peer-trusted-ca-file': denied(`${secretsFolder}/ca.crt`),
      'experimental-initial-corrupt-check': denied('true'),
      'experimental-watch-progress-notify-interval': denied('5s'),
      'experimental-compact-hash-check-enabled': denied('true'),
      'initial-cluster-state': overwrite(state),
      'initial-cluster': overwrite(initialCluster),
      'initial-advertise-peer-urls': overwrite(urlsOf(spec.advertisedAddresses, 2380)),
      'advertise-client-urls': overwrite(urlsOf(spec.advertisedAddresses, 2379)),
    },
    spec.extraArgs,
  )
}
