import type { Ending, Machine } from '../area.ts'
import { stopPods } from '../cri/stop-pods.ts'
import { cordonAndDrain, isRegistered } from '../k8s/drain.ts'
import type { Phase } from './sequencer.ts'

/** How the machine comes to rest: pods first, then services in the opposite order of their start. */
export const stopAll = (machine: Machine): Phase[] => [
  { name: 'cleanup', tasks: [{ name: 'stopAllPods', run: () => stopKubeletAndPods(machine) }] },
  { name: 'stopEverything', tasks: [{ name: 'stopAllServices', run: () => machine.supervisor.stopAll() }] },
]

/** Time for pods to go elsewhere, in milliseconds; what has not gone by then is stopped here. */
const drainLimit = 60_000

/** Pods go elsewhere first, where there is a cluster; that they cannot is told and holds nothing up. */
export const drain = (machine: Machine): Phase[] =>
  isRegistered(machine) ? [{ name: 'drain', tasks: [{ name: 'cordonAndDrainNode', run: ({ signal }) => drainNode(machine, signal) }] }] : []

async function drainNode(machine: Machine, signal: AbortSignal): Promise<void> {
  try {
    await cordonAndDrain(machine, AbortSignal.any([signal, AbortSignal.timeout(drainLimit)]))
  } catch (error) {
    machine.log.warn('node was not drained, its pods are stopped where they are', { error })
  }
}

/** Everything stops, then the machine does; by force, or when the host asks, without letting pods go elsewhere first. */
export const shutdown = (machine: Machine, { force = false } = {}): Phase[] => [
  ...(force ? [] : drain(machine)),
  ...stopAll(machine),
  end(machine, 'shutdown'),
]

/** Everything stops, then the machine starts anew; a forced reboot leaves the pods to be cleaned up at the next start. */
export const reboot = (machine: Machine, { force = false } = {}): Phase[] => [
  ...(force ? stopAll(machine).slice(1) : stopAll(machine)),
  end(machine, 'reboot'),
]

/** The last phase of all. */
export function end(machine: Machine, ending: Ending): Phase {
  return { name: ending, tasks: [{ name: ending, run: () => machine.end(ending) }] }
}

async function stopKubeletAndPods({ supervisor, log }: Machine): Promise<void> {
  if (!supervisor.get('kubelet')) return
  await supervisor.stop('kubelet')
  await stopPods({ log })
}
