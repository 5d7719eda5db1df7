import type { Machine } from '../../area.ts'
import { SystemDisk } from '../../block/resources/system-disk.ts'
import { VolumeStatus } from '../../block/resources/volume-status.ts'
import { wipeDevice, wipeLabels } from '../../block/wipe.ts'
import type { Phase, Task } from '../sequencer.ts'

/** What a kernel parameter asks to be wiped: the whole system disk, partitions of it, or other disks. */
type Wish = { system: 'all' } | { system: readonly string[] } | { disks: readonly string[] }

/** Reads `system`, `system:LABEL[,LABEL]` or `/dev/x[,/dev/y]`. Throws one line for anything else. */
export function parseWipe(value: string): Wish {
  const names = (text: string) => text.split(',').filter(Boolean)
  if (value === 'system') return { system: 'all' }
  const labels = value.startsWith('system:') ? names(value.slice('system:'.length)) : []
  if (labels.length > 0) return { system: labels }
  const disks = names(value)
  if (disks.length > 0 && disks.every((disk) => disk.startsWith('/dev/'))) return { disks }
  throw new Error(`kernel parameter "talos.experimental.wipe=${value}": want "system", "system:STATE,EPHEMERAL" or "/dev/sdb,/dev/sdc"`)
}

/** Wipes what the kernel command line asks for, before anything of a disk is used; without the system disk the machine starts anew. */
export function wipeAtStart(machine: Machine, value: string): Phase {
  const wish = parseWipe(value)
  const name = 'disks' in wish ? 'wipeDisks' : wish.system === 'all' ? 'wipeSystemDisk' : 'wipeSystemDiskPartitions'
  return { name: 'wipeDisks', tasks: [task(machine, name, wish)] }
}

const task = (machine: Machine, name: string, wish: Wish): Task => ({
  name,
  async run({ log, signal }) {
    // Where the system lies is known when every disk has been looked at.
    const meta = await machine.store.until(VolumeStatus, 'META', ({ spec }) => spec.phase !== 'waiting', { signal })
    if ('disks' in wish) {
      for (const disk of wish.disks) await wipeDevice(machine, disk)
      return
    }
    if (meta.spec.phase === 'missing') return log.info('no system disk to wipe')
    const disk = (await machine.store.until(SystemDisk, 'system-disk', undefined, { signal })).spec.devPath
    if (wish.system !== 'all') return wipeLabels(machine, disk, wish.system)
    await wipeDevice(machine, disk, { inUse: true })
    machine.end('reboot')
    await new Promise(() => {}) // nothing comes after
  },
})
