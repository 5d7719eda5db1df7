import type { Ending, Machine } from '../area.ts'
import { stopPods } from '../cri/stop-pods.ts'
import type { Phase } from './sequencer.ts'

/** How the machine comes to rest: pods first, then services in the opposite order of their start. */
export const stopAll = (machine: Machine): Phase[] => [
  { name: 'cleanup', tasks: [{ name: 'stopAllPods', run: () => stopKubeletAndPods(machine) }] },
  { name: 'stopEverything', tasks: [{ name: 'stopAllServices', run: () => machine.supervisor.stopAll() }] },
]

/** Everything stops, then the machine does. */
export const shutdown = (machine: Machine): Phase[] => [...stopAll(machine), end(machine, 'shutdown')]

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
