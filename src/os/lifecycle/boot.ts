import type { Machine } from '../area.ts'
import { VolumeConfig } from '../block/documents/volume.ts'
import { mountVolume, systemLabels } from '../block/public.ts'
import { VolumeStatus } from '../block/resources/volume-status.ts'
import { declared, find } from '../config/public.ts'
import { MachineConfig } from '../config/resources/machine-config.ts'
import { MachineType } from '../config/resources/machine-type.ts'
import { extensionPrefix } from '../runtime/public.ts'
import type { Phase, Task, TaskContext } from './sequencer.ts'
import { startService } from './services.ts'
import { lockModules } from './start/lock-modules.ts'
import { sizeChecks } from './start/size-checks.ts'
import { writeUdevRules } from './start/udev-rules.ts'
import { putUserFiles } from './start/user-files.ts'

/** Time limit for all services to come up, in milliseconds. */
const servicesLimit = 70 * 60_000

const [systemLabel = ''] = Object.keys(systemLabels)

/** Time limit for a slow disk, or one with a long check, in milliseconds. */
const ephemeralLimit = 35 * 60_000

/** The boot sequence, run once a configuration exists: starts everything. */
export const boot = (machine: Machine): Phase[] => [
  ...(machine.kernel.mode === 'container' ? [] : sizeChecks(machine)),
  { name: 'sharedFilesystems', tasks: [{ name: 'shareFilesystems', run: () => machine.kernel.mount.propagate('/', 'rshared') }] },
  ...(machine.kernel.mode === 'container' ? [] : ownDisk(machine)),
  { name: 'userSetup', tasks: [putUserFiles(machine)] },
  {
    name: 'startEverything',
    tasks: [
      startAllServices(machine),
      // Loading takes a while and delays nothing else.
      ...(machine.kernel.mode === 'container'
        ? []
        : [lockModules(machine), { name: 'containApid', run: ({ signal }: TaskContext) => machine.apidPlace.contain(signal) }]),
    ],
  },
]

const ownDisk = (machine: Machine): Phase[] => [
  { name: 'ephemeral', tasks: [mountEphemeral(machine)] },
  { name: 'udevSetup', tasks: [writeUdevRules(machine)] },
]

const mountEphemeral = ({ store }: Machine): Task => ({
  name: 'mountEphemeralPartition',
  async run({ log, signal }) {
    const limit = AbortSignal.any([signal, AbortSignal.timeout(ephemeralLimit)])
    const secure = find(declared(store.get(MachineConfig, 'v1alpha1')), VolumeConfig, 'EPHEMERAL')?.mount?.secure
    await mountVolume(store, 'EPHEMERAL', { log, signal: limit }, secure)
    // The directories on it, and the overlays of image directories.
    const system = store.list(VolumeStatus).filter(({ metadata, spec }) => systemLabel in metadata.labels && spec.type !== 'partition')
    await Promise.all(system.map(({ metadata }) => mountVolume(store, metadata.id, { log, signal: limit })))
  },
})

const startAllServices = (machine: Machine): Task => ({
  name: 'startAllServices',
  async run({ signal }) {
    const { store, supervisor } = machine
    const type = await store.until(MachineType, 'machine-type', undefined, { signal })
    const ids = ['registryd', 'cri', ...(type.spec === 'worker' ? [] : ['trustd', 'etcd'])]
    for (const id of ids) startService(machine, id)
    // The start of the machine does not wait for what extensions run.
    for (const id of machine.serviceIds().filter((each) => each.startsWith(extensionPrefix))) startService(machine, id)
    const limit = AbortSignal.any([signal, AbortSignal.timeout(servicesLimit)])
    await Promise.all([...ids, 'kubelet'].map((id) => supervisor.until(id, 'up', limit)))
  },
})
