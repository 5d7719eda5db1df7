import { operators, unary } from '../../../rpc/server/method.ts'
import { etcdReaders, withEtcd } from './local.ts'

/** How this member fares: sizes, leader, raft's positions. */
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

/** What etcd has raised the alarm about. */
export const etcdAlarmList = unary('machine.MachineService/EtcdAlarmList', etcdReaders, (_, { store }) =>
  withEtcd(store, 'etcd alarm list', async (client) => ({
    messages: [{ memberAlarms: (await client.alarms()).map(({ memberID, alarm }) => ({ memberId: memberID, alarm })) }],
  })),
)

/** Takes the alarms back. */
export const etcdAlarmDisarm = unary('machine.MachineService/EtcdAlarmDisarm', operators, (_, { store }) =>
  withEtcd(store, 'etcd alarm disarm', async (client) => ({
    messages: [{ memberAlarms: (await client.disarm()).map(({ memberID, alarm }) => ({ memberId: memberID, alarm })) }],
  })),
)

/** Rewrites this member's database without its holes; the member does not answer meanwhile. */
export const etcdDefragment = unary('machine.MachineService/EtcdDefragment', operators, (_, { store }) =>
  withEtcd(store, 'etcd defragment', async (client) => {
    await client.defragment()
    return { messages: [{}] }
  }),
)
