import { operators, unary } from '../../../rpc/server/method.ts'
import { etcdReaders, withEtcd } from './local.ts'

/** The state of this member: sizes, leader, raft indexes. */
export const etcdStatus = unary('machine.MachineService/EtcdStatus', etcdReaders, (_, { store }) =>
  withEtcd(store, 'etcd status', async (client) => {
    const status = await client.status()
    return {
      messages: [
        {
          memberStatus: {
            storageVersion: status.storageVersion,
            memberId: status.header?.memberId ?? '0',
            protocolVersion: status.version,
            dbSize: status.dbSize,
            dbSizeInUse: status.dbSizeInUse,
            leader: status.leader,
            raftIndex: status.raftIndex,
            raftTerm: status.raftTerm,
            raftAppliedIndex: status.raftAppliedIndex,
            errors: status.errors,
            isLearner: status.isLearner,
          },
        },
      ],
    }
  }),
)

/** The active alarms of etcd. */
export const etcdAlarmList = unary('machine.MachineService/EtcdAlarmList', etcdReaders, (_, { store }) =>
  withEtcd(store, 'etcd alarm list', async (client) => ({
    messages: [{ memberAlarms: (await client.alarms()).map(({ memberID, alarm }) => ({ memberId: memberID, alarm })) }],
  })),
)

/** Disarms all alarms. */
export const etcdAlarmDisarm = unary('machine.MachineService/EtcdAlarmDisarm', operators, (_, { store }) =>
  withEtcd(store, 'etcd alarm disarm', async (client) => ({
    messages: [{ memberAlarms: (await client.disarm()).map(({ memberID, alarm }) => ({ memberId: memberID, alarm })) }],
  })),
)

/** Defragments this member's database; the member does not answer meanwhile. */
export const etcdDefragment = unary('machine.MachineService/EtcdDefragment', operators, (_, { store }) =>
  withEtcd(store, 'etcd defragment', async (client) => {
    await client.defragment()
    return { messages: [{}] }
  }),
)
