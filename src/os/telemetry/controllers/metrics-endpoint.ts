import { createHash } from 'node:crypto'
import { type Controller, defineController, exclusive, weak } from '../../../cosi/controller.ts'
import type { Machine } from '../../area.ts'
import { declared, find } from '../../config/public.ts'
import { MachineConfig } from '../../config/resources/machine-config.ts'
import { TelemetryConfig } from '../documents/telemetry.ts'
import { MetricsEndpoint } from '../resources/metrics-endpoint.ts'

/** The endpoint of metrics that the configuration declares. */
export const configMetricsEndpoint: Controller = defineController({
  name: 'runtime.MetricsEndpointConfigController',
  effects: 'none',
  inputs: { config: weak(MachineConfig, { id: 'v1alpha1' }) },
  outputs: { endpoint: exclusive(MetricsEndpoint) },
  reconcile({ config, endpoint }) {
    const declaration = find(declared(config.get('v1alpha1')), TelemetryConfig)?.prometheus
    if (declaration?.listen === undefined) return
    const { listen, clientCA = '', bearerToken } = declaration
    const tokenDigest = bearerToken === undefined ? '' : createHash('sha256').update(bearerToken).digest('hex')
    endpoint.put('metrics', { listen, clientCA, tokenDigest })
  },
})

/** Runs metricsd while an endpoint is declared, and starts it again when the declaration has changed. */
export const startMetrics = ({ supervisor, service }: Pick<Machine, 'supervisor' | 'service'>): Controller => {
  let started: string | undefined
  return defineController({
    name: 'runtime.MetricsServiceController',
    starts: ['metricsd'],
    inputs: { endpoints: weak(MetricsEndpoint, { id: 'metrics' }) },
    outputs: {},
    async reconcile({ endpoints, log }) {
      const endpoint = endpoints.get('metrics')?.spec
      const desired = endpoint && JSON.stringify(endpoint)
      if (desired === started) return
      if (desired === undefined) await supervisor.unload('metricsd')
      else if (started === undefined) {
        supervisor.load(service('metricsd'))
        supervisor.start('metricsd')
      } else {
        log.info('restarting metricsd, its configuration changed')
        await supervisor.restart('metricsd')
      }
      started = desired
    },
  })
}
