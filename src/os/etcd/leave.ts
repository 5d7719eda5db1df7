import { systemClock } from '../../cosi/clock.ts'
import { RpcError } from '../../rpc/status.ts'
import { pause } from '../../timing/pause.ts'
import type { Machine } from '../area.ts'
import { dataFolder, keptFolder } from './arguments.ts'
import { type EtcdClient, hexId, memberIdOf } from './client.ts'
import { localEtcd, otherEtcd } from './endpoints.ts'

/** How long a refusal counts as temporary, in milliseconds. */
const retryLimit = 15_000

/** What leaving uses of the machine. */
export type Leaving = Pick<Machine, 'store' | 'log' | 'supervisor'> & { kernel: { files: Pick<Machine['kernel']['files'], 'remove'> } }

/** Removes this node from etcd permanently: hands leadership on, removes the member, stops etcd and deletes its data. */
export async function etcdLeave({ store, log, supervisor, kernel }: Leaving): Promise<void> {
  const client = localEtcd(store)
  let id: string
  try {
    id = await memberIdOf(client)
    const members = await client.members()
    const others = members.filter((member) => member.ID !== id && !member.isLearner)
    const heir = others[0]
    if (!heir) throw new Error('this is the only voting member of etcd, without it the cluster ends: reset the node with --graceful=false')
    if ((await client.status()).leader === id) await client.moveLeader(heir.ID)
  } finally {
    client.close()
  }
  // The removal goes through another member: this one stops the moment it is removed, before it can answer.
  const others = otherEtcd(store)
  if (!others) throw new Error('no other member of etcd is known to take this one out')
  try {
    log.info('leaving etcd', { member: hexId(id) })
    await removeMember(others, id)
  } finally {
    others.close()
  }
  await supervisor.stop('etcd')
  await kernel.files.remove(`${dataFolder}/member`)
  await kernel.files.remove(keptFolder)
}

/** A cluster that has just changed its leader may refuse for a moment, so the removal is retried. */
async function removeMember(client: EtcdClient, id: string): Promise<void> {
  const end = systemClock.deadline(retryLimit)
  for (;;) {
    try {
      return await client.remove(id)
    } catch (error) {
      if (!(error instanceof RpcError) || error.status === 'NotFound' || end.over) throw error
      await pause(500)
      if (!(await client.members()).some((member) => member.ID === id)) return
    }
  }
}
