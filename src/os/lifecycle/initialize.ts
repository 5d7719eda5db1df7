import { parameterValues, parseCommandLine } from '../../wire/command-line.ts'
import type { Machine } from '../area.ts'
import { AcquireConfigSpec } from '../config/resources/acquire-config-spec.ts'
import { AcquireConfigStatus, acquireId } from '../config/resources/acquire-config-status.ts'
import type { Phase, Task } from './sequencer.ts'
import { startService } from './services.ts'

/** What happens before there is a configuration: the API comes up, then a configuration is looked for. */
export const initialize = (machine: Machine): Phase[] => [
  ...(machine.kernel.mode === 'container' ? [] : [systemRequirements(machine)]),
  {
    name: machine.kernel.mode === 'container' ? 'machined' : 'earlyServices',
    tasks: [
      ...(machine.kernel.mode === 'container' ? [] : [{ name: 'startUdevd', run: () => startService(machine, 'udevd') }]),
      { name: 'startMachined', run: () => startService(machine, 'machined') },
      { name: 'startContainerd', run: () => startService(machine, 'containerd') },
      { name: 'startApid', run: () => startService(machine, 'apid') },
    ],
  },
  { name: 'config', tasks: [loadConfig(machine)] },
]

/** Kernel parameters without which no machine is started, after the Kernel Self Protection Project. */
const required: readonly [name: string, value: string][] = [
  ['slab_nomerge', ''],
  ['pti', 'on'],
]

const systemRequirements = ({ kernel, log }: Machine): Phase => ({
  name: 'systemRequirements',
  tasks: [
    {
      name: 'enforceKSPPRequirements',
      run() {
        const parameters = parseCommandLine(kernel.files.readText('/proc/cmdline'))
        for (const [name, value] of required) {
          if (parameterValues(parameters, name).at(-1) === value) continue // the last one counts
          throw new Error(
            `kernel parameter "${value ? `${name}=${value}` : name}" is missing: the machine starts only with it on the kernel command line`,
          )
        }
        log.warn('nothing is installed on a disk: state and volumes are in memory and are lost when the machine goes off')
      },
    },
  ],
})

/** Asks for a configuration and waits for as long as it takes: a machine without one stays in maintenance. */
const loadConfig = ({ store }: Machine): Task => ({
  name: 'loadConfig',
  async run({ signal }) {
    store.put(AcquireConfigSpec, acquireId, {})
    await store.until(AcquireConfigStatus, acquireId, undefined, { signal })
  },
})
