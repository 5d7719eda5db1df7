import { type Controller, defineController, exclusive, weak } from '../../../cosi/controller.ts'
import { parameterValues, parseCommandLine } from '../../../wire/command-line.ts'
import { declared, find } from '../../config/public.ts'
import { MachineConfig } from '../../config/resources/machine-config.ts'
import { EventSinkConfig as EventSinkDocument, sinkProblem } from '../documents/event-sink.ts'
import { EventSinkConfig } from '../resources/event-sink-config.ts'

/** The event sink: of the configuration, else of the kernel command line (`talos.events.sink`). */
export const configEventSink = (commandLine: string): Controller =>
  defineController({
    name: 'runtime.EventsSinkConfigController',
    effects: 'none',
    inputs: { config: weak(MachineConfig, { id: 'v1alpha1' }) },
    outputs: { sink: exclusive(EventSinkConfig) },
    reconcile({ config, sink }) {
      const given = parameterValues(parseCommandLine(commandLine), 'talos.events.sink').at(-1)
      const valid = given !== undefined && sinkProblem(given) === undefined ? given : undefined
      const endpoint = find(declared(config.get('v1alpha1')), EventSinkDocument)?.endpoint ?? valid
      if (endpoint) sink.put('event-sink', { endpoint })
    },
  })
