import { type Controller, defineController, shared, weak } from '../../../cosi/controller.ts'
import type { Store } from '../../../cosi/store.ts'
import { messageOf } from '../../../wire/error-message.ts'
import { Diagnostic } from '../../runtime/resources/diagnostic.ts'
import { Service } from '../../runtime/resources/service.ts'
import { localEtcd } from '../endpoints.ts'
import type { Repair } from '../repair/repair.ts'
import { EtcdRepair } from '../resources/etcd-repair.ts'
import { EtcdSpec } from '../resources/etcd-spec.ts'

/** Milliseconds between queries whether the member votes again. */
const interval = 2_000
/** Milliseconds for which data that was put aside is kept after the member votes again. */
const keptTime = 86_400_000

/** Completes the repair of this node's member, reports it meanwhile, and deletes the data that was put aside when its time is over. */
export const observeRepair = ({ store, repair }: { store: Store; repair: Repair }, local: typeof localEtcd = localEtcd): Controller =>
  defineController({
    name: 'etcd.RepairController',
    inputs: {
      repairs: weak(EtcdRepair, { id: 'etcd' }),
      services: weak(Service, { id: 'etcd' }),
      specs: weak(EtcdSpec, { id: 'etcd' }),
    },
    outputs: { diagnostics: shared(Diagnostic) },
    async reconcile({ repairs, services, specs, diagnostics, log, now, wakeIn, wakeAt }) {
      const found = repairs.get('etcd')?.spec
      const name = specs.get('etcd')?.spec.name
      if (!found || name === undefined) return
      const { state, reason, waiting, kept } = found
      if (state === 'waiting') {
        const message = `etcd cannot use its data (${reason}), and does not join the others again by itself: ${waiting}`
        return diagnostics.put('etcd-data', { message, details: [] })
      }
      if (state === 'voting') {
        const until = repair.keptUntil(keptTime)
        if (until && until > now()) return wakeAt(until)
        return repair.forget(name)
      }
      const message = `etcd could not use its data (${reason}): the data was put aside (${kept}), and the member joins the others again`
      diagnostics.put('etcd-data', { message, details: [] })
      if (!services.get('etcd')?.spec.healthy) return
      const client = local(store)
      try {
        if ((await client.status()).isLearner) return wakeIn(interval)
        await repair.voting(name, client)
      } catch (error) {
        log.debug('the repaired etcd member does not vote yet', { error: messageOf(error) })
        wakeIn(interval)
      } finally {
        client.close()
      }
    },
  })
