import { type Controller, defineController, shared, weak } from '../../../cosi/controller.ts'
import { merge, strongest } from '../../../cosi/merge.ts'
import { transform } from '../../../cosi/transform.ts'
import { declared, find } from '../../config/public.ts'
import { MachineConfig } from '../../config/resources/machine-config.ts'
import { TimeSyncConfig } from '../../time/documents/time-sync.ts'
import { type BootNetwork, silentBoot } from '../boot-network.ts'
import { TimeServerSpec, TimeServerStatus } from '../resources/time-server.ts'

/** Declares the configured time servers. */
export const configTimeServers = (boot: BootNetwork = silentBoot): Controller =>
  defineController({
    name: 'network.TimeServerConfigController',
    effects: 'none',
    inputs: { config: weak(MachineConfig, { id: 'v1alpha1' }) },
    outputs: { spec: shared(TimeServerSpec, 'network-config') },
    reconcile({ config, spec }) {
      spec.put('default/timeservers', { timeServers: ['time.cloudflare.com'], layer: 'default' })
      if (boot.timeServers.length > 0) spec.put('cmdline/timeservers', { timeServers: [...boot.timeServers], layer: 'cmdline' })
      const found = declared(config.get('v1alpha1'))
      const synced = find(found, TimeSyncConfig)
      const timeServers: string[] | undefined = synced?.ntp?.servers ?? synced?.ptp?.devices ?? found?.machine.time?.servers
      if (timeServers && timeServers.length > 0) spec.put('configuration/timeservers', { timeServers, layer: 'configuration' })
    },
  })

/** Takes the time servers of the strongest layer; within it, all specs are joined. */
export const mergeTimeServers: Controller = merge(
  'TimeServerMergeControllers.net.talos.dev',
  TimeServerSpec,
  (layered) => {
    const layer = strongest(layered)?.layer
    if (!layer) return undefined
    const timeServers = new Set(layered.flatMap(({ spec }) => (spec.layer === layer ? spec.timeServers : [])))
    return { timeServers: [...timeServers], layer }
  },
  { id: () => 'timeservers' },
)

/** Publishes the time servers in use. */
export const applyTimeServers: Controller = transform({
  name: 'network.TimeServerSpecController',
  from: TimeServerSpec,
  to: TimeServerStatus,
  strong: true,
  apply: ({ timeServers }) => ({ timeServers }),
})
