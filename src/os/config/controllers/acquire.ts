import { type Controller, defineController, exclusive, weak } from '../../../cosi/controller.ts'
import { ConfigError } from '../../../document/config-error.ts'
import type { Machine } from '../../area.ts'
import { MaintenanceServiceRequest } from '../../runtime/resources/maintenance-service-request.ts'
import { ConfigContainer } from '../container.ts'
import { previousStatePath, statePath } from '../keep.ts'
import { AcquireConfigSpec } from '../resources/acquire-config-spec.ts'
import { AcquireConfigStatus } from '../resources/acquire-config-status.ts'
import { MachineConfig } from '../resources/machine-config.ts'
import { settleTrial } from '../trial.ts'

/**
 * Finds the configuration: first the one that was kept, then whatever an operator sends while the machine waits in
 * maintenance. A kept one that does not parse is told and passed over for the one before it; when neither does, the machine
 * goes to maintenance and stays reachable.
 */
export const acquireConfig = ({ kernel: { files }, store, events }: Pick<Machine, 'kernel' | 'store' | 'events'>): Controller => {
  let looked = false
  return defineController({
    name: 'config.AcquireController',
    inputs: { request: weak(AcquireConfigSpec), config: weak(MachineConfig, { id: 'v1alpha1' }) },
    outputs: { status: exclusive(AcquireConfigStatus), maintenance: exclusive(MaintenanceServiceRequest) },
    async reconcile({ request, config, status, maintenance, log, now }) {
      if (!request.get('config')) return
      if (!config.get('v1alpha1') && !looked) {
        await settleTrial({ kernel: { files }, log }, now())
        looked = true
        for (const path of [statePath, previousStatePath]) {
          const kept = files.readTextIfThere(path)
          if (kept === undefined) continue
          try {
            ConfigContainer.parse(kept)
          } catch (error) {
            if (!(error instanceof ConfigError)) throw error
            log.error('kept machine configuration is broken', { path, error })
            events.publish('machine.ConfigLoadErrorEvent', { error: `${path}: ${error.message}` })
            continue
          }
          log.info('machine configuration found', { source: 'state', path })
          store.put(MachineConfig, 'persistent', kept)
          store.put(MachineConfig, 'v1alpha1', kept)
          status.put('config', {})
          return
        }
      }
      if (config.get('v1alpha1')) status.put('config', {})
      else {
        log.info('no machine configuration, waiting for one over the API')
        maintenance.put('maintenance', {})
      }
    },
  })
}
