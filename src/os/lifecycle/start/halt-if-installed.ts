import { pause } from '../../../timing/pause.ts'
import type { Machine } from '../../area.ts'
import type { Task } from '../sequencer.ts'
import { isInstalled } from '../slots/boot-disk.ts'

/** How long the machine is halted, and the interval of the log message, in milliseconds. */
const held = 70 * 60_000
const reminder = 10_000

/** Halts a machine booted from a medium although it is installed, until the medium is removed. */
export const haltIfInstalled = (machine: Machine): Task => ({
  name: 'haltIfInstalled',
  async run({ log, signal }) {
    if (!isInstalled(machine) || !machine.kernel.files.exists('/run/ichor/medium')) return
    for (let waited = 0; waited < held; waited += reminder) {
      log.error('already installed, but booted from a medium: remove the medium and reboot')
      await pause(reminder, signal)
      signal.throwIfAborted()
    }
    throw new Error('booted from a medium although already installed')
  },
})
