import { parameterValues, parseCommandLine } from '../../wire/command-line.ts'
import type { Machine } from '../area.ts'
import { AcquireConfigSpec, AcquireConfigStatus, acquireId } from '../config/resources/acquire-config.ts'
import { DevicesStatus } from '../runtime/resources/devices-status.ts'
import { completeInstallation } from './install/install-system.ts'
import type { Phase, Task, TaskContext } from './sequencer.ts'
import { startService } from './services.ts'
import { startDashboard } from './start/dashboard.ts'
import { haltIfInstalled } from './start/halt-if-installed.ts'
import { enforceHardening } from './start/hardening.ts'
import { wipeAtStart } from './start/wipe-disks.ts'
import { beginVolumes } from './volumes.ts'

/** What happens before there is a configuration: the API comes up, then a configuration is looked for. */
export const initialize = (machine: Machine): Phase[] => (machine.kernel.mode === 'container' ? inContainer(machine) : onMachine(machine))

const inContainer = (machine: Machine): Phase[] => [
  { name: 'machined', tasks: ['machined', 'containerd', 'apid'].map((id) => serviceTask(machine, id)) },
  { name: 'config', tasks: [loadConfig(machine)] },
]

const onMachine = (machine: Machine): Phase[] => {
  const parameters = parseCommandLine(machine.kernel.files.readText('/proc/cmdline'))
  const last = (name: string) => parameterValues(parameters, name).at(-1)
  const wipe = last('talos.experimental.wipe')
  return [
    { name: 'systemRequirements', tasks: [enforceHardening(machine)] },
    { name: 'installation', tasks: [{ name: 'completeInstallation', run: async () => void (await completeInstallation(machine)) }] },
    { name: 'earlyServices', tasks: ['udevd', 'machined', 'syslogd', 'apid'].map((id) => serviceTask(machine, id)) },
    { name: 'usb', tasks: [{ name: 'waitForUSB', run: ({ signal }) => waitForDevices(machine, signal) }] },
    ...(wipe === undefined ? [] : [wipeAtStart(machine, wipe)]),
    { name: 'meta', tasks: [{ name: 'reloadMeta', run: (context) => reloadMeta(machine, context) }] },
    // Nothing needs it yet, and at the start of a machine there is much else to do.
    { name: 'containerd', tasks: [serviceTask(machine, 'containerd')] },
    ...(isOn(last('talos.dashboard.disabled')) ? [] : [{ name: 'dashboard', tasks: [startDashboard(machine)] }]),
    ...(isOn(last('talos.halt_if_installed')) ? [{ name: 'haltIfInstalled', tasks: [haltIfInstalled(machine)] }] : []),
    { name: 'config', tasks: [loadConfig(machine)] },
  ]
}

function serviceTask(machine: Machine, id: string): Task {
  return { name: `start${id.charAt(0).toUpperCase()}${id.slice(1)}`, run: () => startService(machine, id) }
}

/** Devices that are there when the power comes on have their drivers and names once udevd has been through them. */
async function waitForDevices({ store }: Machine, signal: AbortSignal): Promise<void> {
  await store.until(DevicesStatus, 'devices', ({ spec }) => spec.ready, { signal })
}

/** Volumes may be used from here on; whether there is a META is known when all disks have been looked at. */
async function reloadMeta({ store, meta }: Machine, { signal }: TaskContext): Promise<void> {
  beginVolumes(store)
  await meta.reload(signal)
}

/** Asks for a configuration and waits for as long as it takes: a machine without one stays in maintenance. */
export const loadConfig = ({ store }: Machine): Task => ({
  name: 'loadConfig',
  async run({ signal }) {
    store.put(AcquireConfigSpec, acquireId, {})
    await store.until(AcquireConfigStatus, acquireId, undefined, { signal })
  },
})

/** What counts as yes on a kernel command line. */
const isOn = (value: string | undefined): boolean => ['1', 't', 'T', 'true', 'TRUE', 'True'].includes(value ?? '')
