/** The first installation: from the first configuration to a machine that boots from its disk. */

import type { Machine } from '../area.ts'
import { endVolumes, untilMounted } from '../block/public.ts'
import { type ConfigState, configPaths } from '../config/public.ts'
import { AcquireConfigStatus, acquireId } from '../config/resources/acquire-config.ts'
import { MachineConfig } from '../config/resources/machine-config.ts'
import { serveImages, untilImagesCopied } from './install/image-cache.ts'
import { installSystem } from './install/install-system.ts'
import type { Phase, TaskContext } from './sequencer.ts'
import { end, stopEverything } from './stop.ts'

/** Where the machine keeps its own data: in memory until STATE is mounted here. */
const stateFolder = '/system/state'

/** Time limit for creating, encrypting, formatting and mounting partitions, and for the end of a volume that is just being made, in milliseconds. */
const volumesLimit = 10 * 60_000

/**
 * Installs the system on the disk, copies the data collected so far to STATE, and reboots from the disk. The phases may run
 * again after a failure: completed writes are not repeated.
 */
export const install = (machine: Machine, config: Pick<ConfigState, 'files' | 'carry'>): Phase[] => {
  const { store, meta } = machine
  const known = new Map<string, Uint8Array>()
  let configuration: ReadonlyMap<string, string> = new Map()
  let written = false
  let saved = false
  return [
    {
      name: 'install',
      tasks: [
        {
          name: 'install',
          async run(context) {
            if (written) return
            for (const [path, content] of remembered(machine)) known.set(path, content)
            configuration = config.files()
            await serveImages(machine, context)
            await installSystem(machine, context)
            written = true
          },
        },
      ],
    },
    { name: 'meta', tasks: [{ name: 'reloadMeta', run: ({ signal }) => meta.reload(signal) }] },
    { name: 'saveMeta', tasks: [{ name: 'flushMeta', run: async () => void (await meta.flush()) }] },
    {
      name: 'saveState',
      tasks: [
        {
          name: 'saveStatePartition',
          async run(context) {
            // Once volumes have ended STATE is not mounted again.
            if (!saved) await carryState(machine, { known, configuration: () => config.carry(configuration) }, context)
            saved = true
          },
        },
      ],
    },
    { name: 'imageCache', tasks: [{ name: 'waitForImageCacheCopy', run: (context) => untilImagesCopied(machine, context) }] },
    {
      name: 'volumeFinalize',
      tasks: [
        { name: 'teardownLifecycle', run: ({ signal }) => endVolumes(store, AbortSignal.any([signal, AbortSignal.timeout(volumesLimit)])) },
      ],
    },
    stopEverything(machine),
    end(machine, 'reboot'),
  ]
}

/** The present files other than the configuration, over which STATE will be mounted. */
function remembered({ kernel: { files } }: Machine): [string, Uint8Array][] {
  return files
    .listEntries(stateFolder)
    .filter((entry) => entry.isFile())
    .map(({ name }) => `${stateFolder}/${name}`)
    .filter((path) => !configPaths.includes(path))
    .map((path) => [path, files.read(path)])
}

async function carryState(
  { kernel: { files }, store }: Machine,
  { known, configuration }: { known: ReadonlyMap<string, Uint8Array>; configuration: () => Promise<void> },
  { log, signal }: TaskContext,
): Promise<void> {
  await untilMounted(store, 'STATE', { log, signal: AbortSignal.any([signal, AbortSignal.timeout(volumesLimit)]) })
  for (const [path, content] of known) await files.writeAtomic(path, content, { mode: 0o600 })
  await configuration()
  log.info('machine state saved to STATE', { files: known.size })
}

/**
 * Reverts to maintenance mode after a failed installation: no configuration is active, and another one can be applied.
 */
export async function withdrawConfig({ store }: Pick<Machine, 'store'>, config: Pick<ConfigState, 'withdraw'>): Promise<void> {
  await config.withdraw()
  // If another configuration was applied before the removal of the first was seen, there is nothing to wait for.
  const over = () => !store.get(AcquireConfigStatus, acquireId) || store.get(MachineConfig, 'v1alpha1') !== undefined
  const { promise, resolve } = Promise.withResolvers<void>()
  const look = () => over() && resolve()
  const stops = [
    store.subscribe(AcquireConfigStatus, look, { only: acquireId }),
    store.subscribe(MachineConfig, look, { only: 'v1alpha1' }),
  ]
  look()
  await promise.finally(() => {
    for (const stop of stops) stop()
  })
}
