import type { Machine, StopReason } from '../area.ts'
import { SystemDisk } from '../block/resources/system-disk.ts'
import { stopPods } from '../cri/stop-pods.ts'
import { cordonAndDrain, isRegistered } from '../k8s/node/drain.ts'
import type { Phase, Task, TaskContext } from './sequencer.ts'
import { kexecPrepare } from './start/kexec.ts'
import { endVolumes, unmountVolume } from './volumes.ts'

/** Services that answer the API and need nothing of the disk: they go last. */
const lastServices = ['machined', 'apid', 'containerd', 'udevd', 'syslogd', 'auditd', 'dashboard']

/** Where pods and their containers have mounts of their own. */
const podFolders = ['/var/lib/kubelet', '/var/lib/containerd', '/run/containerd', '/run/netns']

/** A file system is let go of by its last user within this time, in milliseconds. */
const unmountLimit = 60_000

/** What is to happen when pods cannot be stopped or file systems of the disk not be unmounted. */
export interface StopOptions {
  /** Fails, with the machine as it is but for its services; otherwise it is told, and the machine goes on to its end. */
  readonly strict?: boolean
}

/** How the machine comes to rest: pods first, then services in the opposite order of their start, then its disk. */
export const stopAll = (machine: Machine, options: StopOptions = {}): Phase[] => [
  stopWorkload(machine, options),
  ...(machine.kernel.mode === 'container' ? [] : leaveDisk(machine, options)),
  stopEverything(machine),
]

/** The kubelet and the pods end. */
const stopWorkload = (machine: Machine, { strict = false }: StopOptions): Phase => {
  const task = { name: 'stopAllPods', run: () => stopKubeletAndPods(machine) }
  return { name: 'cleanup', tasks: [strict ? task : tolerant(task)] }
}

/** Nothing of the machine's disk is in use afterwards, while the API still answers. */
export const leaveDisk = (machine: Machine, { strict = false }: StopOptions = {}): Phase[] => {
  const { supervisor, kernel, store } = machine
  const step = (name: string, task: string, run: (context: TaskContext) => Promise<void> | void): Phase => ({
    name,
    tasks: [strict ? { name: task, run } : tolerant({ name: task, run })],
  })
  const within = ({ signal }: TaskContext) => AbortSignal.any([signal, AbortSignal.timeout(unmountLimit)])
  return [
    step('stopServices', 'stopServicesForUpgrade', () => supervisor.stopAll({ keep: lastServices.filter((id) => supervisor.get(id)) })),
    step('umount', 'unmountPodMounts', () => {
      for (const folder of podFolders) kernel.mount.umountTree(folder)
    }),
    step('unmountBind', 'unmountSystemDiskBindMounts', () => unmountBinds(machine)),
    step('unmountSystem', 'unmountEphemeralPartition', (context) => unmountVolume(store, 'EPHEMERAL', within(context))),
    step('volumeFinalize', 'teardownLifecycle', (context) => endVolumes(store, within(context))),
  ]
}

/** Every service ends; nothing answers any more. */
export const stopEverything = ({ supervisor }: Machine): Phase => ({
  name: 'stopEverything',
  tasks: [{ name: 'stopAllServices', run: () => supervisor.stopAll() }],
})

/** A machine that is on its way down does not stay up because of a file system. */
const tolerant = ({ name, run }: Task): Task => ({
  name,
  async run(context) {
    try {
      await run(context)
    } catch (error) {
      context.signal.throwIfAborted()
      context.log.error('not all could be put away, the machine goes down all the same', { task: name, error })
    }
  },
})

/** Volumes are unmounted by who mounted them; what others have bound from them elsewhere goes here. */
function unmountBinds({ kernel: { mount }, store }: Machine): void {
  const disk = store.get(SystemDisk, 'system-disk')?.spec.devPath
  if (!disk) return
  const entries = mount.mounts()
  const firsts = new Map<string, string>()
  for (const { source, target } of entries) if (source.startsWith(disk) && !firsts.has(source)) firsts.set(source, target)
  for (const { source, target } of entries.toReversed())
    if (firsts.has(source) && firsts.get(source) !== target) mount.umount(target, { detach: true })
}

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

/** Everything stops, then the machine starts anew, by `kexec` where that can be; a forced reboot leaves the pods to be cleaned up at the next start. */
export const reboot = (machine: Machine, { force = false, kexec = false } = {}): Phase[] => [
  ...(kexec && machine.kernel.mode !== 'container' ? [{ name: 'kexec', tasks: [kexecPrepare(machine)] }] : []),
  ...(force ? stopAll(machine).slice(1) : stopAll(machine)),
  end(machine, 'reboot'),
]

/** The last phase of all. */
export function end(machine: Machine, reason: StopReason): Phase {
  return { name: reason, tasks: [{ name: reason, run: () => machine.end(reason) }] }
}

async function stopKubeletAndPods({ supervisor, log }: Machine): Promise<void> {
  if (!supervisor.get('kubelet')) return
  await supervisor.stop('kubelet')
  await stopPods({ log })
}
