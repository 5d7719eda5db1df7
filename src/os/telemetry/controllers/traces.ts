import { type Controller, defineController, weak } from '../../../cosi/controller.ts'
import type { Machine } from '../../area.ts'
import { HostnameStatus } from '../../network/resources/hostname.ts'
import { Environment } from '../../runtime/resources/environment.ts'
import { TraceExporter } from '../traces/exporter.ts'
import { traceSettings } from '../traces/settings.ts'

/** Exports traces of the machine API's calls while the operator's environment names a collector. */
export const exportTraces = ({ calls, version, log, outbound }: Pick<Machine, 'calls' | 'version' | 'log' | 'outbound'>): Controller => {
  let applied = ''
  return defineController({
    name: 'runtime.TraceExportController',
    inputs: { environment: weak(Environment, { id: 'machined' }), hostname: weak(HostnameStatus, { id: 'hostname' }) },
    outputs: {},
    reconcile({ environment, hostname }) {
      const { settings, problem } = traceSettings(environment.get('machined')?.spec.variables ?? [])
      if (problem) throw new Error(problem)
      const name = hostname.get('hostname')?.spec.hostname
      const whole = settings && {
        ...settings,
        resource: { 'service.version': version.tag, ...(name && { 'host.name': name }), ...settings.resource },
      }
      const text = JSON.stringify(whole ?? '')
      if (text === applied) return
      applied = text
      calls.spans.use(whole && new TraceExporter(whole, { log, outbound, scope: { name: version.name, version: version.tag } }))
    },
  })
}
