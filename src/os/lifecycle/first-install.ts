/** From the first configuration to a machine that starts from its own disk. */
import type { Machine } from '../area.ts'
import { type ConfigState, configPaths } from '../config/config-state.ts'
import { AcquireConfigStatus, acquireId } from '../config/resources/acquire-config.ts'
import { MachineConfig } from '../config/resources/machine-config.ts'
import { installSystem } from './install/install-system.ts'
import type { Phase, Task } from './sequencer.ts'
import { end, stopEverything } from './stop.ts'
import { endVolumes, untilMounted } from './volumes.ts'

/** Where the machine keeps what it knows of itself: in memory until there is a STATE to mount here. */
const stateFolder = '/system/state'

/** Partitions are made, formatted and mounted within this time, in milliseconds. */
const stateLimit = 10 * 60_000
const unmountLimit = 60_000

/**
 * Puts the system on its disk, and on STATE what was learned before there was one; then the machine starts anew from there. These
 * phases may be run again when one of them failed: what was written is not written a second time.
 */
export const install = (machine: Machine, config: Pick<ConfigState, 'files' | 'carry'>): Phase[] => {
  const { store, meta } = machine
  const known = new Map<string, Uint8Array>()
  let configuration: ReadonlyMap<string, string> = new Map()
  let written = false
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
            await installSystem(machine, context)
            written = true
          },
        },
      ],
    },
    { name: 'meta', tasks: [{ name: 'reloadMeta', run: ({ signal }) => meta.reload(signal) }] },
    { name: 'saveMeta', tasks: [{ name: 'flushMeta', run: async () => void (await meta.flush()) }] },
    { name: 'saveState', tasks: [carryState(machine, known, () => config.carry(configuration))] },
    {
      name: 'volumeFinalize',
      tasks: [
        { name: 'teardownLifecycle', run: ({ signal }) => endVolumes(store, AbortSignal.any([signal, AbortSignal.timeout(unmountLimit)])) },
      ],
    },
    stopEverything(machine),
    end(machine, 'reboot'),
  ]
}

/** The files there are now besides the configuration's; STATE will be mounted over them. */
function remembered({ kernel: { files } }: Machine): [string, Uint8Array][] {
  return files
    .listEntries(stateFolder)
    .filter((entry) => entry.isFile())
    .map(({ name }) => `${stateFolder}/${name}`)
    .filter((path) => !configPaths.includes(path))
    .map((path) => [path, files.read(path)])
}

const carryState = (
  { kernel: { files }, store }: Machine,
  known: ReadonlyMap<string, Uint8Array>,
  configuration: () => Promise<void>,
): Task => ({
  name: 'saveStatePartition',
  async run({ log, signal }) {
    await untilMounted(store, 'STATE', { log, signal: AbortSignal.any([signal, AbortSignal.timeout(stateLimit)]) })
    for (const [path, content] of known) await files.writeAtomic(path, content, { mode: 0o600 })
    await configuration()
    log.info('what the machine knows of itself is kept on its disk', { files: known.size })
  },
})

/**
 * After an installation that did not come to pass: nothing is in force, and the machine is in maintenance as before, where
 * another configuration can be sent.
 */
export async function withdrawConfig({ store }: Pick<Machine, 'store'>, config: Pick<ConfigState, 'withdraw'>): Promise<void> {
  await config.withdraw()
  // Another configuration may be there before it was noticed that the first has gone: then there is nothing to wait for.
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
