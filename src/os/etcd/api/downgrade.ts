import { unary } from '../../../rpc/server/method.ts'
import { withEtcd } from './local.ts'

/** Whether etcd's storage could be taken back to an older version. */
export const etcdDowngradeValidate = unary('machine.MachineService/EtcdDowngradeValidate', ['os:admin'], ({ version }, { store }) =>
  withEtcd(store, 'etcd downgrade', async (client) => ({
    messages: [{ clusterDowngrade: { clusterVersion: await client.downgrade('VALIDATE', version) } }],
  })),
)

/** Begins to take etcd's storage back to an older version. */
export const etcdDowngradeEnable = unary('machine.MachineService/EtcdDowngradeEnable', ['os:admin'], ({ version }, { store }) =>
  withEtcd(store, 'etcd downgrade', async (client) => ({
    messages: [{ clusterDowngrade: { clusterVersion: await client.downgrade('ENABLE', version) } }],
  })),
)

/** Ends a downgrade that has begun. */
export const etcdDowngradeCancel = unary('machine.MachineService/EtcdDowngradeCancel', ['os:admin'], (_, { store }) =>
  withEtcd(store, 'etcd downgrade', async (client) => ({
    messages: [{ clusterDowngrade: { clusterVersion: await client.downgrade('CANCEL', '') } }],
  })),
)
