import { type Controller, defineController, exclusive, weak } from '../../../cosi/controller.ts'
import { parameterValues, parseCommandLine } from '../../../wire/command-line.ts'
import { declared, findAll } from '../../config/public.ts'
import { MachineConfig } from '../../config/resources/machine-config.ts'
import { splitUrl } from '../../url.ts'
import { KmsgLogConfig as KmsgLogDocument, kmsgProblem } from '../documents/event-sink.ts'
import { KmsgLogConfig } from '../resources/kmsg-log-config.ts'

/** Destinations of the kernel's log: of the kernel command line (`talos.logging.kernel`), then of the configuration, each once. */
export const configKmsgLog = (commandLine: string): Controller =>
  defineController({
    name: 'runtime.KmsgLogConfigController',
    effects: 'none',
    inputs: { config: weak(MachineConfig, { id: 'v1alpha1' }) },
    outputs: { kmsg: exclusive(KmsgLogConfig) },
    reconcile({ config, kmsg }) {
      const given = parameterValues(parseCommandLine(commandLine), 'talos.logging.kernel')
        .slice(-1)
        .filter((url) => kmsgProblem(url) === undefined)
      const documents = findAll(declared(config.get('v1alpha1')), KmsgLogDocument).flatMap(({ url }) => url ?? [])
      const urls = [...new Set([...given, ...documents])]
      if (urls.length > 0) kmsg.put('kmsg-log', { destinations: urls.map(splitUrl) })
    },
  })
