import { messageOf } from '../../../wire/error-message.ts'
import type { Machine } from '../../area.ts'
import { gauge, type Metric, type Sample } from './exposition.ts'
import { fileSystemMetrics } from './file-system-metrics.ts'
import { memoryMetrics } from './memory-metrics.ts'
import * as node from './node-metrics.ts'
import { callMetrics, controllerMetrics, serviceMetrics, storeMetrics } from './own-metrics.ts'
import * as system from './system-metrics.ts'

/** What metrics are read from. */
export type Sources = Pick<Machine, 'kernel' | 'runtime' | 'store' | 'supervisor' | 'calls' | 'version' | 'clock' | 'log'> & {
  readonly config: { readonly state: { readonly trial?: { readonly kind: string } | undefined } }
}

/** The groups of metrics by name. */
type Collectors = Readonly<Record<string, () => Metric[]>>

const collectors = (machine: Sources): Collectors => {
  const { kernel, runtime, store, supervisor, calls, version, config } = machine
  const { files } = kernel
  return {
    cpu: () => node.cpuMetrics(files),
    loadavg: () => node.loadMetrics(files),
    meminfo: () => node.memoryUseMetrics(files),
    diskstats: () => node.diskMetrics(files),
    netdev: () => node.networkMetrics(files),
    pressure: () => node.pressureMetrics(files),
    limits: () => node.limitMetrics(files),
    filesystem: () => fileSystemMetrics(files),
    host: () => hostMetrics(machine),
    processes: () => memoryMetrics(kernel, supervisor),
    machine: () => system.machineMetrics(store),
    trials: () => system.trialMetrics(store, config.state.trial?.kind),
    certificates: () => system.certificateMetrics(store),
    etcd: () => system.etcdMetrics(store),
    deliveries: () => system.deliveryMetrics(store),
    kubespan: () => system.meshMetrics(store),
    services: () => serviceMetrics(supervisor),
    controllers: () => controllerMetrics(runtime),
    resources: () => storeMetrics(store),
    calls: () => callMetrics(calls.counts),
    build: () => [
      {
        name: 'ichor_build_info',
        help: 'The build that runs.',
        type: 'gauge',
        samples: [[{ version: version.tag, sha: version.sha, arch: version.arch }, 1]],
      },
    ],
  }
}

/** Clock, kernel and release of the machine. */
function hostMetrics({ kernel: { uts }, version, clock }: Sources): Metric[] {
  return [
    gauge('node_time_seconds', 'The time of the machine, in seconds since 1970.', clock.now().getTime() / 1000),
    {
      name: 'node_uname_info',
      help: 'The kernel and the name of the machine.',
      type: 'gauge',
      samples: [[{ ...uts.uname() }, 1]],
    },
    {
      name: 'node_os_info',
      help: 'The operating system.',
      type: 'gauge',
      samples: [
        [{ id: version.name.toLowerCase(), name: version.name, version: version.tag, pretty_name: `${version.name} (${version.tag})` }, 1],
      ],
    },
  ]
}

/** All metrics of the machine. A group that cannot be read is left out and reported by `node_scrape_collector_success`. */
export function collect(machine: Sources): Metric[] {
  const metrics: Metric[] = []
  const success: Sample[] = []
  for (const [collector, read] of Object.entries(collectors(machine))) {
    try {
      metrics.push(...read())
      success.push([{ collector }, 1])
    } catch (error) {
      machine.log.debug('read metrics failed', { collector, error: messageOf(error) })
      success.push([{ collector }, 0])
    }
  }
  const name = 'node_scrape_collector_success'
  return [...metrics, { name, help: 'Whether a group of metrics could be read.', type: 'gauge', samples: success }]
}
