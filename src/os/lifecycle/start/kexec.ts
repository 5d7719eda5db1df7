import { messageOf } from '../../../wire/error-message.ts'
import type { Machine } from '../../area.ts'
import type { Task } from '../sequencer.ts'
import { isInstalled, withBootLoader } from '../slots/boot-disk.ts'

/** In memory, until loaded into the kernel. */
const folder = '/run/ichor/kexec'

/**
 * Loads the next kernel by kexec, which skips the firmware and saves minutes on large machines. A trial is left to the boot
 * loader, which counts its boots, and a UEFI machine to its firmware, which verifies the kernel. A failed load is only logged.
 */
export const kexecPrepare = ({ kernel, store, systemChanges }: Machine): Task => ({
  name: 'kexecPrepare',
  async run({ log }) {
    const { files, reboot } = kernel
    if (!isInstalled({ store })) return
    try {
      const start = await withBootLoader({ kernel, store, systemChanges }, async (loader, running) => {
        const { good, next, trial } = await loader.state()
        return trial || next !== good || !next || next !== running ? undefined : loader.start?.(next)
      })
      if (!start) return
      files.mkdirAll(folder, { mode: 0o700 })
      for (const [name, bytes] of Object.entries(start)) await files.writeAtomic(`${folder}/${name}`, bytes, { mode: 0o600 })
      reboot.loadNextKernel(`${folder}/kernel`, `${folder}/initramfs`, files.readText('/proc/cmdline').trim())
      log.info('kexec prepared')
    } catch (error) {
      log.info('kexec unavailable, rebooting through the firmware', { error: messageOf(error) })
    } finally {
      await files.remove(folder)
    }
  },
})
