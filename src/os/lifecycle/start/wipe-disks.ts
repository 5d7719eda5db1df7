import type { Machine } from '../../area.ts'
import { wipeDevice, wipeLabels } from '../../block/public.ts'
import { SystemDisk } from '../../block/resources/system-disk.ts'
import { VolumeStatus } from '../../block/resources/volume-status.ts'
import type { Phase, Task } from '../sequencer.ts'

/** What a kernel parameter requests to wipe: the whole system disk, some of its partitions, or other disks. */
type WipeRequest = { system: 'all' } | { system: readonly string[] } | { disks: readonly string[] }

/** Parses `system`, `system:LABEL[,LABEL]` or `/dev/x[,/dev/y]`. Throws a one-line error otherwise. */
export function parseWipe(value: string): WipeRequest {
  const names = (text: string) => text.split(',').filter(Boolean)
  if (value === 'system') return { system: 'all' }
  const labels = value.startsWith('system:') ? names(value.slice('system:'.length)) : []
  if (labels.length > 0) return { system: labels }
  const disks = names(value)
  if (disks.length > 0 && disks.every((disk) => disk.startsWith('/dev/'))) return { disks }
  throw new Error(`kernel parameter "talos.experimental.wipe=${value}": want "system", "system:STATE,EPHEMERAL" or "/dev/sdb,/dev/sdc"`)
}

/** Wipes what the kernel command line requests, before any disk is used. After wiping the system disk the machine reboots. */
export function wipeAtStart(machine: Machine, value: string): Phase {
  const request = parseWipe(value)
  const name = 'disks' in request ? 'wipeDisks' : request.system === 'all' ? 'wipeSystemDisk' : 'wipeSystemDiskPartitions'
  return { name: 'wipeDisks', tasks: [task(machine, name, request)] }
}

const task = (machine: Machine, name: string, request: WipeRequest): Task => ({
  name,
  async run({ log, signal }) {
    // The system disk is known once every disk was probed.
    const meta = await machine.store.until(VolumeStatus, 'META', ({ spec }) => spec.phase !== 'waiting', { signal })
    if ('disks' in request) {
      for (const disk of request.disks) await wipeDevice(machine, disk)
      return
    }
    if (meta.spec.phase === 'missing') return log.info('no system disk to wipe')
    const disk = (await machine.store.until(SystemDisk, 'system-disk', undefined, { signal })).spec.devPath
    if (request.system !== 'all') return wipeLabels(machine, disk, request.system)
    await wipeDevice(machine, disk, { inUse: true })
    machine.end('reboot')
    await new Promise(() => {}) // nothing follows
  },
})
