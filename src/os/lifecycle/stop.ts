import type { Machine, StopReason } from '../area.ts'
import { endVolumes, unmountVolume } from '../block/public.ts'
import { SystemDisk } from '../block/resources/system-disk.ts'
import { VolumeStatus } from '../block/resources/volume-status.ts'
import { stopPods } from '../cri/public.ts'
import { cordonAndDrain, isRegistered, shutdownTime } from '../k8s/public.ts'
import { KubeletSpec } from '../k8s/resources/kubelet.ts'
import type { Phase, Task, TaskContext } from './sequencer.ts'
import { kexecPrepare } from './start/kexec.ts'

/** Services that serve the API and need no disk: they stop last. */
const lastServices = ['machined', 'apid', 'containerd', 'udevd', 'syslogd', 'auditd', 'dashboard']

/** Directories where pods and their containers have mounts. */
const podFolders = ['/var/lib/kubelet', '/var/lib/containerd', '/run/containerd', '/run/netns']

/** Time limit for the last user of a file system to release it, in milliseconds. */
const unmountLimit = 60_000

/** What to do if pods cannot be stopped or file systems cannot be unmounted. */
export interface StopOptions {
  /** If true, the sequence fails, with services stopped but nothing else changed. Otherwise the error is logged and the sequence continues. */
  readonly strict?: boolean
}

/** Stops the machine: pods first, then services in reverse start order, then its volumes. */
export const stopAll = (machine: Machine): Phase[] => [stopWorkload(machine), ...leaveDisk(machine), stopEverything(machine)]

/** Stops the kubelet and the pods. */
export const stopWorkload = (machine: Machine, { strict = false }: StopOptions = {}): Phase => {
  const task = { name: 'stopAllPods', run: ({ signal }: TaskContext) => stopKubeletAndPods(machine, signal) }
  return { name: 'cleanup', tasks: [strict ? task : tolerant(task)] }
}

/** Releases the disks, while the API still answers. The folders of a container stay mounted. */
export const leaveDisk = (machine: Machine, { strict = false }: StopOptions = {}): Phase[] => {
  const { supervisor, kernel, store } = machine
  if (kernel.mode === 'container') return []
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

/** Stops every service; the API no longer answers afterwards. */
export const stopEverything = ({ supervisor }: Machine): Phase => ({
  name: 'stopEverything',
  tasks: [{ name: 'stopAllServices', run: () => supervisor.stopAll() }],
})

/** Errors of a task do not stop a shutdown. */
const tolerant = ({ name, run }: Task): Task => ({
  name,
  async run(context) {
    try {
      await run(context)
    } catch (error) {
      context.signal.throwIfAborted()
      context.log.error('shutdown task failed, continuing', { task: name, error })
    }
  },
})

/** Volumes are unmounted by their controller; bind mounts of them elsewhere are unmounted here. */
function unmountBinds({ kernel: { mount }, store }: Machine): void {
  const disk = store.get(SystemDisk, 'system-disk')?.spec.devPath
  if (!disk) return
  const entries = mount.mounts()
  const firsts = new Map<string, string>()
  // An encrypted volume is mounted from its mapping.
  const mapped = new Set(
    store
      .list(VolumeStatus)
      .filter(({ spec }) => spec.encryptionProvider && spec.parentLocation === disk)
      .map(({ spec }) => spec.mountLocation),
  )
  for (const { source, target } of entries)
    if ((source.startsWith(disk) || mapped.has(source)) && !firsts.has(source)) firsts.set(source, target)
  for (const { source, target } of entries.toReversed())
    if (firsts.has(source) && firsts.get(source) !== target) mount.umount(target, { detach: true })
}

/** Drain timeout in milliseconds; pods still running afterwards are stopped. */
const drainLimit = 60_000

/** Drains the node if it is part of a cluster. Failure is logged and does not stop the sequence. */
export const drain = (machine: Machine): Phase[] =>
  isRegistered(machine) ? [{ name: 'drain', tasks: [{ name: 'cordonAndDrainNode', run: ({ signal }) => drainNode(machine, signal) }] }] : []

async function drainNode(machine: Machine, signal: AbortSignal): Promise<void> {
  try {
    await cordonAndDrain(machine, drainLimit, signal)
  } catch (error) {
    signal.throwIfAborted()
    machine.log.warn('drain node failed, stopping its pods', { error })
  }
}

/** The shutdown sequence. If forced, or requested by the host, the node is not drained. */
export const shutdown = (machine: Machine, { force = false } = {}): Phase[] => [
  ...(force ? [] : drain(machine)),
  ...stopAll(machine),
  end(machine, 'shutdown'),
]

/** The reboot sequence, by `kexec` if possible. A forced reboot leaves pods to be cleaned up at the next boot. */
export const reboot = (machine: Machine, { force = false, kexec = false } = {}): Phase[] => [
  ...(kexec && machine.kernel.mode !== 'container' ? [{ name: 'kexec', tasks: [kexecPrepare(machine)] }] : []),
  ...(force ? [] : [stopWorkload(machine)]),
  ...leaveDisk(machine),
  stopEverything(machine),
  end(machine, 'reboot'),
]

/** The final phase. */
export function end(machine: Machine, reason: StopReason): Phase {
  const run = async () => {
    // Services have ended and controllers still run: their last lines go out before the network does.
    await machine.deliveries.drain()
    // A disk is released by now; the folder of a container still is there.
    await machine.logFiles.close()
    machine.end(reason)
  }
  return { name: reason, tasks: [{ name: reason, run }] }
}

/** Milliseconds beyond the kubelet's own plan until it is stopped with what it has not ended. */
const kubeletMargin = 10_000

/** The kubelet ends its pods, as far as it can; what still runs afterwards is stopped without it. */
async function stopKubeletAndPods({ supervisor, logind, store, log }: Machine, signal: AbortSignal): Promise<void> {
  if (!supervisor.get('kubelet')) return
  try {
    const limit = shutdownTime(store.get(KubeletSpec, 'kubelet')?.spec.config ?? {}) + kubeletMargin
    const outcome = await logind.prepareForShutdown(limit, signal)
    if (outcome === 'released') log.info('kubelet ended its pods')
    else log.warn('pods are stopped without the kubelet', { reason: outcome })
    await supervisor.stop('kubelet')
  } finally {
    logind.resume()
  }
  await stopPods({ log })
}
