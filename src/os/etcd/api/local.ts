import type { Store } from '../../../cosi/store.ts'
import { type Role, readers } from '../../../rpc/server/method.ts'
import { RpcError } from '../../../rpc/status.ts'
import { VolumeMountStatus } from '../../block/resources/volume-mount.ts'
import { MachineType } from '../../config/resources/machine-type.ts'
import type { Mode } from '../../kernel.ts'
import { mountId } from '../../lifecycle/volumes.ts'
import type { EtcdClient } from '../client.ts'
import { localEtcd } from '../endpoints.ts'

/** Who may look at etcd: readers, and those who back it up. */
export const etcdReaders: readonly Role[] = [...readers, 'os:etcd:backup']

/** Refuses what only a control plane node can do. */
export function onControlPlane(store: Store, what: string): void {
  if (store.get(MachineType, 'machine-type')?.spec === 'worker')
    throw new RpcError('Unimplemented', `${what}: this is a worker, ask a control plane node`)
}

/** Refuses what is kept beside etcd's data before its disk is there: until then it would be forgotten with the restart after an installation. */
export function withDisk(store: Store, mode: Mode, what: string): void {
  if (mode === 'container' || store.get(VolumeMountStatus, mountId('EPHEMERAL'))) return
  throw new RpcError(
    'FailedPrecondition',
    `${what}: the node has no disk for etcd yet: ask again when it is installed and has started from its disk`,
  )
}

/** Does something with this node's etcd. */
export async function withEtcd<T>(store: Store, what: string, act: (client: EtcdClient) => Promise<T>): Promise<T> {
  onControlPlane(store, what)
  const client = localEtcd(store)
  try {
    return await act(client)
  } finally {
    client.close()
  }
}
