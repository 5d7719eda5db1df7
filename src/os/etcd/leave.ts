import type { Machine } from '../area.ts'
import { dataFolder } from './arguments.ts'
import { memberIdOf } from './client.ts'
import { localEtcd } from './endpoints.ts'

/** What leaving needs of the machine. */
export type Leaving = Pick<Machine, 'store' | 'log' | 'supervisor'> & { kernel: { files: Pick<Machine['kernel']['files'], 'remove'> } }

/** Takes this node out of etcd for good: leadership is handed on, the member removed, etcd stopped and its data deleted. */
export async function etcdLeave({ store, log, supervisor, kernel }: Leaving): Promise<void> {
  const client = localEtcd(store)
  try {
    const id = await memberIdOf(client)
    const members = await client.members()
    const others = members.filter((member) => member.ID !== id && !member.isLearner)
    if (others.length === 0)
      throw new Error('this is the only voting member of etcd, without it the cluster ends: reset the node with --graceful=false')
    const heir = others[0]
    if (heir && (await client.status()).leader === id) await client.moveLeader(heir.ID)
    log.info('leaving etcd', { member: id })
    await client.remove(id)
  } finally {
    client.close()
  }
  await supervisor.stop('etcd')
  await kernel.files.remove(`${dataFolder}/member`)
}
