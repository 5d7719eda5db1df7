import { type Controller, defineController, exclusive } from '../../../cosi/controller.ts'
import { machine as enums } from '../../../rpc/enums.ts'
import type { ServiceEvent } from '../../../supervise/snapshot.ts'
import type { Machine } from '../../area.ts'
import { Service } from '../resources/service.ts'
import { healthMessage } from '../service-health.ts'

const { Action } = enums.ServiceStateEvent

/** Running services, as resources; every change of a service also becomes an event of the machine. */
export const observeServices = ({ supervisor, events }: Pick<Machine, 'supervisor' | 'events'>): Controller =>
  defineController({
    name: 'v1alpha1.ServiceController',
    inputs: {},
    outputs: { services: exclusive(Service) },
    start({ wake, signal }) {
      const stop = supervisor.subscribe((event) => {
        events.publish('machine.ServiceStateEvent', payloadOf(event))
        wake()
      })
      signal.addEventListener('abort', stop)
    },
    reconcile({ services }) {
      for (const { id, state, health } of supervisor.list())
        if (state === 'Running') services.put(id, { running: true, healthy: health.healthy, unknown: health.unknown })
    },
  })

function payloadOf({ id, state, message, health }: ServiceEvent): Record<string, unknown> {
  return { service: id, action: Action[state.toUpperCase() as keyof typeof Action], message, health: healthMessage(health) }
}
