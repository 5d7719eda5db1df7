import { unary } from '../../../rpc/server/method.ts'
import { withEtcd } from './local.ts'

/** Whether etcd's storage can be downgraded to an older version. */
export const etcdDowngradeValidate = unary('machine.MachineService/EtcdDowngradeValidate', ['os:admin'], ({ version }, { store }) =>
  withEtcd(store, 'etcd downgrade', async (client) => ({
    messages: [{ clusterDowngrade: { clusterVersion: await client.downgrade('VALIDATE', version) } }],
  })),
)

/** Starts a downgrade of etcd's storage. */
export const etcdDowngradeEnable = unary('machine.MachineService/EtcdDowngradeEnable', ['os:admin'], ({ version }, { store }) =>
  withEtcd(store, 'etcd downgrade', async (client) => ({
    messages: [{ clusterDowngrade: { clusterVersion: await client.downgrade('ENABLE', version) } }],
  })),
)

/** Cancels a downgrade that has started. */
export const etcdDowngradeCancel = unary('machine.MachineService/EtcdDowngradeCancel', ['os:admin'], (_, { store }) =>
  withEtcd(store, 'etcd downgrade', async (client) => ({
    messages: [{ clusterDowngrade: { clusterVersion: await client.downgrade('CANCEL', '') } }],
  })),
)
