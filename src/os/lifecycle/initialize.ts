import type { Logger } from '../../cosi/log.ts'
import { parameterValues, parseCommandLine } from '../../wire/command-line.ts'
import type { Machine } from '../area.ts'
import { beginVolumes, parseGivenMeta } from '../block/public.ts'
import { AcquireConfigSpec, AcquireConfigStatus, acquireId } from '../config/resources/acquire-config.ts'
import { DevicesStatus } from '../runtime/resources/devices-status.ts'
import { completeInstallation } from './install/install-system.ts'
import { isOn } from './kernel-parameters/parameter.ts'
import type { Phase, Task, TaskContext } from './sequencer.ts'
import { startService } from './services.ts'
import { startDashboard } from './start/dashboard.ts'
import { haltIfInstalled } from './start/halt-if-installed.ts'
import { enforceHardening } from './start/hardening.ts'
import { wipeAtStart } from './start/wipe-disks.ts'

/** The initialize sequence, run before a configuration exists: starts the API, then acquires a configuration. */
export const initialize = (machine: Machine): Phase[] => (machine.kernel.mode === 'container' ? inContainer(machine) : onMachine(machine))

const inContainer = (machine: Machine): Phase[] => [
  { name: 'machined', tasks: ['machined', 'containerd', 'apid'].map((id) => serviceTask(machine, id)) },
  { name: 'config', tasks: [loadConfig(machine)] },
]

const onMachine = (machine: Machine): Phase[] => {
  const parameters = parseCommandLine(machine.kernel.files.readText('/proc/cmdline'))
  const wipe = parameterValues(parameters, 'talos.experimental.wipe').at(-1)
  const early = ['udevd', 'machined', ...(isOn(parameters, 'talos.auditd.disabled') ? [] : ['auditd']), 'syslogd', 'apid']
  return [
    { name: 'systemRequirements', tasks: [enforceHardening(machine)] },
    { name: 'installation', tasks: [{ name: 'completeInstallation', run: async () => void (await completeInstallation(machine)) }] },
    { name: 'earlyServices', tasks: early.map((id) => serviceTask(machine, id)) },
    { name: 'usb', tasks: [{ name: 'waitForUSB', run: ({ signal }) => waitForDevices(machine, signal) }] },
    ...(wipe === undefined ? [] : [wipeAtStart(machine, wipe)]),
    { name: 'meta', tasks: [{ name: 'reloadMeta', run: (context) => reloadMeta(machine, context) }] },
    // Not needed earlier, and the boot has more urgent work until here.
    { name: 'containerd', tasks: [serviceTask(machine, 'containerd')] },
    ...(isOn(parameters, 'talos.dashboard.disabled') ? [] : [{ name: 'dashboard', tasks: [startDashboard(machine)] }]),
    ...(isOn(parameters, 'talos.halt_if_installed') ? [{ name: 'haltIfInstalled', tasks: [haltIfInstalled(machine)] }] : []),
    { name: 'config', tasks: [loadConfig(machine)] },
  ]
}

function serviceTask(machine: Machine, id: string): Task {
  return { name: `start${id.charAt(0).toUpperCase()}${id.slice(1)}`, run: () => startService(machine, id) }
}

/** Devices present at power-on have drivers and names once udevd has processed them. */
async function waitForDevices({ store }: Machine, signal: AbortSignal): Promise<void> {
  await store.until(DevicesStatus, 'devices', ({ spec }) => spec.ready, { signal })
}

/** Starts the use of volumes. The state of META is known once all disks were probed. */
async function reloadMeta({ store, meta, kernel }: Machine, { signal, log }: TaskContext): Promise<void> {
  beginVolumes(store)
  await meta.reload(signal, givenMeta(kernel.files.readTextIfThere('/proc/cmdline') ?? '', log))
}

function givenMeta(commandLine: string, log: Logger): ReadonlyMap<number, string> {
  try {
    return parseGivenMeta(commandLine)
  } catch (error) {
    // A medium with values that cannot be read starts as one without.
    log.error('read META values of the kernel command line failed', { error })
    return new Map()
  }
}

/** Acquires a configuration, however long it takes: without one the machine stays in maintenance mode. */
export const loadConfig = ({ store }: Machine): Task => ({
  name: 'loadConfig',
  async run({ signal }) {
    store.put(AcquireConfigSpec, acquireId, {})
    await store.until(AcquireConfigStatus, acquireId, undefined, { signal })
  },
})
