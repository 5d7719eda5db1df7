import type { Machine } from '../area.ts'
import { MachineType } from '../config/resources/machine-type.ts'
import type { Phase, Task } from './sequencer.ts'
import { startService } from './services.ts'

/** All services must be up within this time, in milliseconds. */
const servicesLimit = 70 * 60_000

/** What happens once there is a configuration: everything the machine is for is started. */
export const boot = (machine: Machine): Phase[] => [
  { name: 'sharedFilesystems', tasks: [{ name: 'shareFilesystems', run: () => machine.kernel.mount.propagate('/', 'rshared') }] },
  { name: 'startEverything', tasks: [startAllServices(machine)] },
]

const startAllServices = (machine: Machine): Task => ({
  name: 'startAllServices',
  async run({ signal }) {
    const { store, supervisor } = machine
    const type = await store.until(MachineType, 'machine-type', undefined, { signal })
    const ids = ['registryd', 'cri', ...(type.spec === 'worker' ? [] : ['trustd', 'etcd'])]
    for (const id of ids) startService(machine, id)
    const limit = AbortSignal.any([signal, AbortSignal.timeout(servicesLimit)])
    await Promise.all([...ids, 'kubelet'].map((id) => supervisor.until(id, 'up', limit)))
  },
})
