import { type Controller, defineController, exclusive, weak } from '../../../cosi/controller.ts'
import type { Logger } from '../../../cosi/log.ts'
import { ConfigError } from '../../../document/config-error.ts'
import type { Machine } from '../../area.ts'
import { mountId, VolumeMountStatus } from '../../block/resources/volume-mount.ts'
import { VolumeRecovery } from '../../block/resources/volume-recovery.ts'
import { VolumeStatus } from '../../block/resources/volume-status.ts'
import { MaintenanceServiceRequest } from '../../runtime/resources/maintenance-service.ts'
import type { ConfigState } from '../config-state.ts'
import { ConfigContainer } from '../container.ts'
import { previousStatePath, statePath } from '../keep.ts'
import { configOf } from '../parse.ts'
import { AcquireConfigSpec, AcquireConfigStatus, acquireId } from '../resources/acquire-config.ts'
import { MachineConfig } from '../resources/machine-config.ts'
import type { Environment } from '../sources/platform.ts'
import { isWhole, type Search, search } from '../sources/search.ts'
import { sourcesOf } from '../sources/sources.ts'

type Dependencies = Pick<Machine, 'kernel' | 'store' | 'events' | 'clouds' | 'outbound'>

/**
 * Finds the configuration: first the one that was kept, then from source to source in the documented order, then from an operator
 * while the machine waits in maintenance. A kept one that cannot be parsed is logged, and the previous one is used. Dependencies of a
 * configuration are in force while the search goes on.
 */
export const acquireConfig = (
  { kernel, store, events, clouds, outbound }: Dependencies,
  state: Pick<ConfigState, 'found' | 'restart'>,
  { environment = process.env as Environment, ...given }: Partial<Pick<Search, 'sleep' | 'limits'>> & { environment?: Environment } = {},
): Controller => {
  let looked = false
  let searched = false
  return defineController({
    name: 'config.AcquireController',
    inputs: {
      request: weak(AcquireConfigSpec),
      config: weak(MachineConfig, { id: 'v1alpha1' }),
      volumes: weak(VolumeStatus, { id: 'STATE' }),
      mounts: weak(VolumeMountStatus, { id: mountId('STATE') }),
      recovery: weak(VolumeRecovery, { id: 'STATE' }),
    },
    outputs: { status: exclusive(AcquireConfigStatus), maintenance: exclusive(MaintenanceServiceRequest) },
    async reconcile({ request, config, volumes, mounts, recovery, status, maintenance, background, log }) {
      if (!request.get(acquireId)) return
      // Until the disks have been probed it is not known whether a configuration is kept.
      const mayBeKept = kernel.mode !== 'container' && volumes.get('STATE')?.spec.phase !== 'missing' && !mounts.get(mountId('STATE'))
      // Only a recovery key is accepted then, and nothing else that maintenance allows.
      if (!looked && mayBeKept) return recovery.get('STATE')?.spec.locked ? maintenance.put('maintenance', {}) : undefined
      if (!looked && !config.get('v1alpha1')) {
        const kept = (await state.restart()) ?? readKept({ kernel, events }, log)
        looked = true
        if (kept !== undefined) state.found(kept)
      }
      const present = configOf(config.get('v1alpha1'))
      if (present && isWhole(present)) return status.put(acquireId, {})
      const sources = searched ? [] : sourcesOf({ kernel, store, clouds, outbound }, environment)
      if (sources.length === 0) {
        log.info('no machine configuration, waiting for one over the API')
        return maintenance.put('maintenance', {})
      }
      background('search', async (signal, wake, report) => {
        const found = (text: string) => state.found(text)
        await search({ ...given, sources, mode: kernel.mode, log, events, signal, report, found }, present)
        searched = !signal.aborted
        wake()
      })
    },
  })
}

/** The configuration that was kept, or the one before it. */
function readKept({ kernel: { files }, events }: Pick<Dependencies, 'kernel' | 'events'>, log: Logger): string | undefined {
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
    return kept
  }
  return undefined
}
