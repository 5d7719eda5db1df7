import { type Controller, defineController, exclusive, shared, weak } from '../../../cosi/controller.ts'
import { messageOf } from '../../../wire/error-message.ts'
import { Diagnostic } from '../../runtime/resources/diagnostic.ts'
import { Service } from '../../runtime/resources/service.ts'
import { EtcdSpec } from '../resources/etcd-spec.ts'
import { EtcdUpkeep } from '../resources/etcd-upkeep.ts'
import { type Round, Upkeep, type UpkeepTools } from '../upkeep/upkeep.ts'

/** Milliseconds between rounds. */
const interval = 15_000

/** Defragments etcd and makes a full one writable again, and reports its sizes. */
export const maintainEtcd = (tools: Omit<UpkeepTools, 'clock' | 'log'>): Controller => {
  let last: Round | undefined
  return defineController({
    name: 'etcd.UpkeepController',
    inputs: { services: weak(Service, { id: 'etcd' }), specs: weak(EtcdSpec, { id: 'etcd' }) },
    outputs: { upkeep: exclusive(EtcdUpkeep), diagnostics: shared(Diagnostic) },
    reconcile({ services, specs, upkeep, diagnostics, log, clock, background }) {
      const node = specs.get('etcd')?.spec.name
      if (!services.get('etcd')?.spec.healthy || node === undefined) {
        last = undefined
        return
      }
      if (last) {
        upkeep.put('etcd', last.status)
        for (const { id, message } of last.problems) diagnostics.put(id, { message, details: [] })
      }
      background(`upkeep ${node}`, async (signal, wake, report) => {
        const rounds = new Upkeep({ ...tools, clock, log })
        while (!signal.aborted) {
          try {
            last = await rounds.round(node)
            report()
            wake()
          } catch (error) {
            report(error)
            log.debug('upkeep of etcd is tried again', { error: messageOf(error) })
          }
          await clock.sleep(interval, signal)
        }
      })
    },
  })
}
