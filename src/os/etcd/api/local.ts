import type { Store } from '../../../cosi/store.ts'
import { readers } from '../../../rpc/server/method.ts'
import { RpcError } from '../../../rpc/status.ts'
import type { Role } from '../../../wire/x509/roles.ts'
import { mountId, VolumeMountStatus } from '../../block/resources/volume-mount.ts'
import { MachineType } from '../../config/resources/machine-type.ts'
import type { Mode } from '../../kernel.ts'
import type { EtcdClient } from '../client.ts'
import { etcdCredentials, localEtcd } from '../endpoints.ts'

/** Roles that may read etcd's state: readers, and those that back it up. */
export const etcdReaders: readonly Role[] = [...readers, 'os:etcd:backup']

/** Refuses what only a control plane node can do. */
export function onControlPlane(store: Store, what: string): void {
  if (store.get(MachineType, 'machine-type')?.spec === 'worker')
    throw new RpcError('Unimplemented', `${what}: this is a worker, ask a control plane node`)
}

/** Refuses while etcd's disk is not there: what is written beside etcd's data would be lost with the restart after an installation. */
export function withDisk(store: Store, mode: Mode, what: string): void {
  if (mode === 'container' || store.get(VolumeMountStatus, mountId('EPHEMERAL'))) return
  throw new RpcError(
    'FailedPrecondition',
    `${what}: the node has no disk for etcd yet: ask again when it is installed and has started from its disk`,
  )
}

/** Runs an action on this node's etcd. While etcd has no certificates yet the code is one at which clients retry. */
export async function withEtcd<T>(store: Store, what: string, act: (client: EtcdClient) => Promise<T>): Promise<T> {
  onControlPlane(store, what)
  if (!etcdCredentials(store)) throw new RpcError('Unavailable', `${what}: the certificates of etcd are not there yet`)
  const client = localEtcd(store)
  try {
    return await act(client)
  } finally {
    client.close()
  }
}
