import type { Machine } from '../../area.ts'
import { declared } from '../../config/public.ts'
import { MachineConfig } from '../../config/resources/machine-config.ts'
import { udevadm } from '../../runtime/public.ts'
import type { Task } from '../sequencer.ts'

/** A writable directory from which udevd reads rules. */
const rulesFile = '/run/udev/rules.d/99-talos.rules'

/** Timeout for devices to be processed with new rules, in seconds. */
const settleTime = 30

/** Writes the configured udev rules and triggers the devices again. */
export const writeUdevRules = ({ kernel: { files }, store, spawn }: Pick<Machine, 'kernel' | 'store' | 'spawn'>): Task => ({
  name: 'writeUdevRules',
  async run({ log, signal }) {
    const rules = declared(store.get(MachineConfig, 'v1alpha1'))?.machine.udev?.rules ?? []
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
      log.error('apply udev rules failed: check machine.udev.rules', { error })
    }
  },
})
