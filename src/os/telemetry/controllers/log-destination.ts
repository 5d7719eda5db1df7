import { type Controller, defineController, exclusive, weak } from '../../../cosi/controller.ts'
import { declared } from '../../config/public.ts'
import { MachineConfig } from '../../config/resources/machine-config.ts'
import { LogDestination } from '../resources/log-destination.ts'

/** Destinations of the logs of services from the machine configuration; one that is there twice gets every line twice. */
export const configLogDestinations: Controller = defineController({
  name: 'runtime.LogDestinationController',
  effects: 'none',
  inputs: { config: weak(MachineConfig, { id: 'v1alpha1' }) },
  outputs: { destinations: exclusive(LogDestination) },
  reconcile({ config, destinations }) {
    const times = new Map<string, number>()
    for (const { endpoint = '', extraTags = {} } of declared(config.get('v1alpha1'))?.machine.logging?.destinations ?? []) {
      const time = (times.get(endpoint) ?? 0) + 1
      times.set(endpoint, time)
      destinations.put(time === 1 ? endpoint : `${endpoint} ${time}`, { endpoint, extraTags })
    }
  },
})
