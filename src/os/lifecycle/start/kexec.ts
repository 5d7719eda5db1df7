import type { Machine } from '../../area.ts'
import type { Task } from '../sequencer.ts'
import { isInstalled, withBootLoader } from '../slots/boot-disk.ts'

/** In memory, until the kernel has taken them. */
const folder = '/run/ichor/kexec'

/**
 * Has the next start skip the firmware, which takes minutes on large machines. A trial is left to the boot loader, which counts
 * it, and a machine with UEFI to its firmware, which vouches for what is started. Where the kernel refuses, one line says so.
 */
export const kexecPrepare = ({ kernel, store }: Machine): Task => ({
  name: 'kexecPrepare',
  async run({ log }) {
    const { files, reboot } = kernel
    if (!isInstalled({ store })) return
    try {
      const start = await withBootLoader({ kernel, store }, async (loader, running) => {
        const { good, next, trial } = await loader.state()
        return trial || next !== good || !next || next !== running ? undefined : loader.start?.(next)
      })
      if (!start) return
      files.mkdirAll(folder, { mode: 0o700 })
      for (const [name, bytes] of Object.entries(start)) await files.writeAtomic(`${folder}/${name}`, bytes, { mode: 0o600 })
      reboot.loadNextKernel(`${folder}/kernel`, `${folder}/initramfs`, files.readText('/proc/cmdline').trim())
      log.info('the next start skips the firmware')
    } catch (error) {
      log.info('the firmware starts the system: the kernel takes no other one in its place', { why: (error as Error).message })
    } finally {
      await files.remove(folder)
    }
  },
})
