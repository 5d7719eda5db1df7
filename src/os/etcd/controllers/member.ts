import { type Controller, defineController, exclusive, weak } from '../../../cosi/controller.ts'
import type { Store } from '../../../cosi/store.ts'
import { pause } from '../../../timing/pause.ts'
import { Service } from '../../runtime/resources/service.ts'
import type { Bootstrap } from '../bootstrap.ts'
import { hexId, memberIdOf } from '../client.ts'
import { localEtcd, otherEtcd } from '../endpoints.ts'
import { EtcdMember } from '../resources/etcd-member.ts'

const retryDelay = 1000

/** Clients of this node's own etcd, and of the others'. */
interface Clients {
  readonly local: typeof localEtcd
  readonly others: typeof otherEtcd
}

/** This node's etcd member; promotes it from learner as soon as it has caught up. */
export const observeMember = (
  { store, bootstrap }: { store: Store; bootstrap: Bootstrap },
  clients: Clients = { local: localEtcd, others: otherEtcd },
): Controller => {
  let id: string | undefined
  return defineController({
    name: 'etcd.MemberController',
    inputs: { services: weak(Service, { id: 'etcd' }) },
    outputs: { member: exclusive(EtcdMember) },
    reconcile({ services, member, log, background }) {
      if (!services.get('etcd')?.spec.running) {
        id = undefined
        return
      }
      if (id) member.put('local', { memberID: id })
      background('member', async (signal, wake) => {
        const found = await untilDone(signal, async () => {
          const client = clients.local(store)
          try {
            return { id: await memberIdOf(client), learner: (await client.status()).isLearner }
          } finally {
            client.close()
          }
        })
        bootstrap.done()
        id = hexId(found.id)
        wake()
        if (found.learner) {
          await untilDone(signal, async () => {
            const client = clients.others(store)
            if (!client) throw new Error('no other control plane node is known')
            try {
              await client.promote(found.id)
            } catch (error) {
              log.debug('etcd member is not promoted yet', { error })
              throw error
            } finally {
              client.close()
            }
          })
          log.info('etcd member promoted', { member: id })
        }
        // The task stays registered, so that it does not start again while etcd runs.
        await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
      })
    },
  })
}

async function untilDone<T>(signal: AbortSignal, act: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await act()
    } catch {
      await pause(retryDelay, signal)
      signal.throwIfAborted()
    }
  }
}
