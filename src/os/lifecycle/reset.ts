import { pause } from '../../timing/pause.ts'
import type { Machine } from '../area.ts'
import { metaTags, wipeDevice, wipeLabels } from '../block/public.ts'
import { SystemDisk } from '../block/resources/system-disk.ts'
import { MachineType } from '../config/resources/machine-type.ts'
import { etcdLeave } from '../etcd/public.ts'
import { MachineResetSignal } from '../runtime/resources/machine-reset-signal.ts'
import type { Phase } from './sequencer.ts'
import { drain, end, stopAll } from './stop.ts'

/** Options of a reset. */
export interface ResetOptions {
  /** Leave the cluster first, so that no trace of this node remains in it. */
  readonly graceful: boolean
  /** Reboot afterwards; otherwise shut down. */
  readonly reboot: boolean
  /** The whole system disk, or these partitions of it; empty if only user disks are wiped. */
  readonly system: 'all' | readonly string[]
  /** User disks, as device paths. */
  readonly disks: readonly string[]
}

/** In a container partitions are represented by directories. */
const folders: Readonly<Record<string, string>> = { STATE: '/system/state', EPHEMERAL: '/var' }

/** Labels that can be wiped individually in a container. */
export const containerLabels: readonly string[] = Object.keys(folders)

/** Time for peers to learn of the departure, in milliseconds. */
const farewell = 5_000

/** The reset sequence: leave the cluster, stop everything, wipe, then reboot or shut down. */
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

/** Signals the reset to the controllers and waits until discovery has removed this node. */
async function sendResetSignal({ store, runtime }: Machine): Promise<void> {
  store.put(MachineResetSignal, 'machine', {})
  await Promise.race([runtime.settled(), pause(farewell)])
}

/** User disks first: while the system disk is intact, an interrupted reset can be repeated. */
function wipeDisks(machine: Machine, { system, disks }: ResetOptions): Phase[] {
  const path = machine.store.get(SystemDisk, 'system-disk')?.spec.devPath
  const userDisks = async () => {
    for (const disk of disks) await wipeDevice(machine, disk)
  }
  const partitions = async (disk: string, labels: readonly string[]) => {
    await wipeLabels(machine, disk, labels)
    // META keeps how STATE was opened, passphrases included.
    if (labels.includes('STATE') && machine.meta.delete(metaTags.stateEncryption)) await machine.meta.flush()
  }
  return [
    ...(disks.length > 0 ? [wiping('resetUserDisks', 'resetUserDisks', userDisks)] : []),
    ...(path && system === 'all' ? [wiping('reset', 'resetSystemDisk', () => wipeDevice(machine, path, { inUse: true }))] : []),
    ...(path && system !== 'all' && system.length > 0 ? [wiping('resetSpec', 'resetSystemDiskSpec', () => partitions(path, system))] : []),
  ]
}

/** No service runs any more: a machine that cannot wipe logs the error and reboots instead of hanging. */
const wiping = (name: string, task: string, run: () => Promise<void>): Phase => ({
  name,
  tasks: [
    {
      name: task,
      async run({ log }) {
        try {
          await run()
        } catch (error) {
          log.error('wipe failed, rebooting without it', { task, error })
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

/** Empties the directories. They are mount points and are kept. */
async function emptyFolders({ kernel: { files, mount }, log }: Machine, labels: readonly string[]): Promise<void> {
  for (const label of labels) {
    const folder = folders[label]
    if (!folder) continue
    log.info('wiping directory', { label })
    for (const name of files.list(folder)) {
      const path = `${folder}/${name}`
      mount.umountTree(path)
      await files.remove(path)
    }
  }
}
