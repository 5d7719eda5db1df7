import { unary } from '../../../rpc/server/method.ts'
import { RpcError } from '../../../rpc/status.ts'
import { messageOf } from '../../../wire/error-message.ts'
import type { Machine } from '../../area.ts'
import { memberIdOf } from '../client.ts'
import { etcdLeave } from '../leave.ts'
import { etcdReaders, withEtcd } from './local.ts'

/** Lists the members of etcd. */
export const etcdMemberList = unary('machine.MachineService/EtcdMemberList', etcdReaders, ({ queryLocal }, { store }) =>
  withEtcd(store, 'etcd member list', async (client) => {
    const members = await client.members({ local: queryLocal })
    return {
      messages: [
        {
          legacyMembers: members.map(({ name }) => name),
          members: members.map(({ ID, name, peerURLs, clientURLs, isLearner }) => ({
            id: ID,
            hostname: name,
            peerUrls: peerURLs,
            clientUrls: clientURLs,
            isLearner,
          })),
        },
      ],
    }
  }),
)

/** Removes a member by its id, after its node was lost. */
export const etcdRemoveMember = unary('machine.MachineService/EtcdRemoveMemberByID', ['os:admin'], ({ memberId }, { store }) =>
  withEtcd(store, 'etcd remove member', async (client) => {
    const members = await client.members()
    if (!members.some(({ ID }) => ID === memberId)) throw new RpcError('NotFound', `etcd has no member ${BigInt(memberId).toString(16)}`)
    if (members.length === 1) throw new RpcError('FailedPrecondition', 'this is the only member of etcd, it cannot be removed')
    await client.remove(memberId)
    return { messages: [{}] }
  }),
)

/** Makes this node leave etcd. */
export const etcdLeaveCluster = (machine: Machine) =>
  unary('machine.MachineService/EtcdLeaveCluster', ['os:admin'], async (_, { store }) =>
    withEtcd(store, 'etcd leave', async () => {
      try {
        await etcdLeave(machine)
      } catch (error) {
        if (error instanceof RpcError) throw error
        throw new RpcError('FailedPrecondition', messageOf(error))
      }
      return { messages: [{}] }
    }),
  )

/** Hands leadership to another member. Returns its name, or nothing when this node does not lead. */
export const etcdForfeit = unary('machine.MachineService/EtcdForfeitLeadership', ['os:admin'], (_, { store }) =>
  withEtcd(store, 'etcd forfeit leadership', async (client) => {
    const id = await memberIdOf(client)
    if ((await client.status()).leader !== id) return { messages: [{}] }
    const heir = (await client.members()).find((member) => member.ID !== id && !member.isLearner)
    if (!heir) throw new RpcError('FailedPrecondition', 'there is no other voting member of etcd to lead')
    await client.moveLeader(heir.ID)
    return { messages: [{ member: heir.name }] }
  }),
)
