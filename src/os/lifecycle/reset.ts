import type { Machine } from '../area.ts'
import { SystemDisk } from '../block/resources/system-disk.ts'
import { wipeDevice, wipeLabels } from '../block/wipe.ts'
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
  /** The whole system disk, or these partitions of it; none where only user disks are meant. */
  readonly system: 'all' | readonly string[]
  /** Disks for workloads, as paths. */
  readonly disks: readonly string[]
}

/** In a container: what a partition holds elsewhere is a folder. */
const folders: Readonly<Record<string, string>> = { STATE: '/system/state', EPHEMERAL: '/var' }

/** Labels that can be wiped one by one in a container. */
export const containerLabels: readonly string[] = Object.keys(folders)

/** Time for the others to hear of the farewell, in milliseconds. */
const farewell = 5_000

/** The node takes leave, stops, forgets, and starts anew or stays down. */
export const reset = (machine: Machine, options: ResetOptions): Phase[] => [
  ...(options.graceful ? drain(machine) : []),
  ...(options.graceful && machine.store.get(MachineType, 'machine-type')?.spec !== 'worker'
    ? [{ name: 'leave', tasks: [{ name: 'leaveEtcd', run: () => etcdLeave(machine) }] }]
    : []),
  { name: 'preReset', tasks: [{ name: 'sendResetSignal', run: () => sendResetSignal(machine) }] },
  ...stopAll(machine),
  ...(machine.kernel.mode === 'container' ? wipeFolders(machine, options) : wipeDisks(machine, options)),
  end(machine, options.reboot ? 'reboot' : 'shutdown'),
]

/** Tells the controllers, so that discovery forgets this node, and gives them a round to do it. */
async function sendResetSignal({ store, runtime }: Machine): Promise<void> {
  store.put(MachineResetSignal, 'machine', {})
  await Promise.race([runtime.settled(), Bun.sleep(farewell)])
}

/** User disks first: as long as the system is there, a reset that was cut off can be asked for again. */
function wipeDisks(machine: Machine, { system, disks }: ResetOptions): Phase[] {
  const path = machine.store.get(SystemDisk, 'system-disk')?.spec.devPath
  const userDisks = async () => {
    for (const disk of disks) await wipeDevice(machine, disk)
  }
  return [
    ...(disks.length > 0 ? [wiping('resetUserDisks', 'resetUserDisks', userDisks)] : []),
    ...(path && system === 'all' ? [wiping('reset', 'resetSystemDisk', () => wipeDevice(machine, path, { inUse: true }))] : []),
    ...(path && system !== 'all' && system.length > 0
      ? [wiping('resetSpec', 'resetSystemDiskSpec', () => wipeLabels(machine, path, system))]
      : []),
  ]
}

/** Nothing runs any more: a machine that cannot wipe says so and starts as it was, rather than to stand still. */
const wiping = (name: string, task: string, run: () => Promise<void>): Phase => ({
  name,
  tasks: [
    {
      name: task,
      async run({ log }) {
        try {
          await run()
        } catch (error) {
          log.error('reset failed, what is not wiped stays as it was', { task, error })
        }
      },
    },
  ],
})

const wipeFolders = (machine: Machine, { system }: ResetOptions): Phase[] => [
  {
    name: 'resetSpec',
    tasks: [{ name: 'resetSystemDiskSpec', run: () => emptyFolders(machine, system === 'all' ? containerLabels : system) }],
  },
]

/** Empties the folders; they are mount points and stay. */
async function emptyFolders({ kernel: { files, mount }, log }: Machine, labels: readonly string[]): Promise<void> {
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
