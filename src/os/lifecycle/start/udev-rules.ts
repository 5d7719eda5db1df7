import type { Machine } from '../../area.ts'
import { declared } from '../../config/declared.ts'
import { MachineConfig } from '../../config/resources/machine-config.ts'
import { udevadm } from '../../runtime/udevadm.ts'
import type { Task } from '../sequencer.ts'

/** udevd reads rules here too, and this folder can be written. */
const rulesFile = '/run/udev/rules.d/99-talos.rules'

/** Devices get half a minute to follow new rules, in seconds. */
const settleTime = 30

/** Gives udevd the operator's rules and shows it the devices again. */
export const writeUdevRules = ({ kernel: { files }, store, spawn }: Pick<Machine, 'kernel' | 'store' | 'spawn'>): Task => ({
  name: 'writeUdevRules',
  async run({ log, signal }) {
    const rules = (declared(store.get(MachineConfig, 'v1alpha1'))?.machine.udev?.rules ?? []) as string[]
    if (rules.length === 0) return
    try {
      files.mkdirAll(rulesFile.slice(0, rulesFile.lastIndexOf('/')))
      await files.writeAtomic(rulesFile, `${rules.join('\n')}\n`)
      for (const question of [
        ['control', '--reload'],
        ['trigger', '--type=devices'],
        ['settle', `--timeout=${settleTime}`],
      ])
        await udevadm(spawn, question, signal)
    } catch (error) {
      signal.throwIfAborted()
      log.error('devices do not follow the rules of the configuration: look at machine.udev.rules', { error })
    }
  },
})
