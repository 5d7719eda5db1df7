import type { Machine } from '../area.ts'
import { AcquireConfigSpec } from '../config/resources/acquire-config-spec.ts'
import { AcquireConfigStatus, acquireId } from '../config/resources/acquire-config-status.ts'
import type { Phase, Task } from './sequencer.ts'
import { startService } from './services.ts'

/** What happens before there is a configuration: the API comes up, then a configuration is looked for. */
export const initialize = (machine: Machine): Phase[] => [
  {
    name: machine.kernel.mode === 'container' ? 'machined' : 'earlyServices',
    tasks: [
      { name: 'startMachined', run: () => startService(machine, 'machined') },
      { name: 'startContainerd', run: () => startService(machine, 'containerd') },
      { name: 'startApid', run: () => startService(machine, 'apid') },
    ],
  },
  { name: 'config', tasks: [loadConfig(machine)] },
]

/** Asks for a configuration and waits for as long as it takes: a machine without one stays in maintenance. */
const loadConfig = ({ store }: Machine): Task => ({
  name: 'loadConfig',
  async run({ signal }) {
    store.put(AcquireConfigSpec, acquireId, {})
    await store.until(AcquireConfigStatus, acquireId, undefined, { signal })
  },
})
