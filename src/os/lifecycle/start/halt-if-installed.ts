import type { Machine } from '../../area.ts'
import type { Task } from '../sequencer.ts'
import { isInstalled } from '../slots/boot-disk.ts'

/** So long the machine is held, and so often it says why, in milliseconds. */
const held = 70 * 60_000
const reminder = 10_000

/** Holds a machine that was started from a medium though its disk holds an installation: its medium is to be taken out. */
export const haltIfInstalled = (machine: Machine): Task => ({
  name: 'haltIfInstalled',
  async run({ log, signal }) {
    if (!isInstalled(machine) || !machine.kernel.files.exists('/run/ichor/medium')) return
    for (let waited = 0; waited < held; waited += reminder) {
      log.error('the machine is installed and was started from a medium: take the medium out and start it again')
      await Bun.sleep(reminder)
      signal.throwIfAborted()
    }
    throw new Error('the machine was started from a medium though it is installed')
  },
})
