import type { Machine } from '../area.ts'
import { MachineType } from '../config/resources/machine-type.ts'
import { etcdLeave } from '../etcd/leave.ts'
import { MachineResetSignal } from '../runtime/resources/machine-reset-signal.ts'
import type { Phase } from './sequencer.ts'
import { drain, end, stopAll } from './stop.ts'

/** How a machine is to be reset. */
export interface ResetOptions {
  /** Leave the cluster first, so that nothing of this node is left in it. */
  readonly graceful: boolean
  /** Start anew afterwards, else stay down. */
  readonly reboot: boolean
  /** Partitions to wipe by label; none means all. */
  readonly labels: readonly string[]
}

/** What a partition holds, where it is a folder. */
const folders: Readonly<Record<string, string>> = { STATE: '/system/state', EPHEMERAL: '/var' }

/** Labels of partitions that can be wiped one by one. */
export const wipeableLabels: readonly string[] = Object.keys(folders)

/** Time for the others to hear of the farewell, in milliseconds. */
const farewell = 5_000

/** The node takes leave, stops, forgets, and starts anew or stays down. */
export const reset = (machine: Machine, { graceful, reboot, labels }: ResetOptions): Phase[] => [
  ...(graceful ? drain(machine) : []),
  ...(graceful && machine.store.get(MachineType, 'machine-type')?.spec !== 'worker'
    ? [{ name: 'leave', tasks: [{ name: 'leaveEtcd', run: () => etcdLeave(machine) }] }]
    : []),
  { name: 'preReset', tasks: [{ name: 'sendResetSignal', run: () => sendResetSignal(machine) }] },
  ...stopAll(machine),
  { name: 'resetSpec', tasks: [{ name: 'resetSystemDiskSpec', run: () => wipe(machine, labels.length > 0 ? labels : wipeableLabels) }] },
  end(machine, reboot ? 'reboot' : 'shutdown'),
]

/** Tells the controllers, so that discovery forgets this node, and gives them a round to do it. */
async function sendResetSignal({ store, runtime }: Machine): Promise<void> {
  store.put(MachineResetSignal, 'machine', {})
  await Promise.race([runtime.settled(), Bun.sleep(farewell)])
}

/** Empties the folders; they are mount points and stay. */
async function wipe({ kernel: { files, mount }, log }: Machine, labels: readonly string[]): Promise<void> {
  for (const label of labels) {
    const folder = folders[label]
    if (!folder) continue
    log.info('wiping', { label })
    for (const name of files.list(folder)) {
      const path = `${folder}/${name}`
      mount.umountTree(path)
      await files.remove(path)
    }
  }
}
