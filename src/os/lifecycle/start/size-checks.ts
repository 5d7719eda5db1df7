import type { Machine } from '../../area.ts'
import { Disk } from '../../block/resources/disk.ts'
import { SystemDisk } from '../../block/resources/system-disk.ts'
import { MachineType } from '../../config/resources/machine-type.ts'
import type { Phase } from '../sequencer.ts'

const mebibyte = 1024 * 1024
/** Allowance for memory reserved by firmware and kernel, in MiB. */
const reserve = 150
const memoryFor = { controlPlane: 1848 - reserve, worker: 1024 - reserve }
const smallestDisk = 6 * 1024

/** Logs a warning if memory or system disk are below the minimum. They may still suffice for small workloads. */
export const sizeChecks = ({ kernel, store }: Pick<Machine, 'kernel' | 'store'>): Phase[] => [
  {
    name: 'memorySizeCheck',
    tasks: [
      {
        name: 'memorySizeCheck',
        run({ log }) {
          const found = memoryOf(kernel)
          const least = store.get(MachineType, 'machine-type')?.spec === 'worker' ? memoryFor.worker : memoryFor.controlPlane
          if (found !== undefined && found < least) log.warn('memory below the minimum', { memory: `${found} MiB`, least: `${least} MiB` })
        },
      },
    ],
  },
  {
    name: 'diskSizeCheck',
    tasks: [
      {
        name: 'diskSizeCheck',
        run({ log }) {
          const id = store.get(SystemDisk, 'system-disk')?.spec.diskID
          const size = id && store.get(Disk, id)?.spec.size
          if (!size || size >= smallestDisk * mebibyte) return
          log.warn('system disk below the minimum', { disk: id, size: `${Math.floor(size / mebibyte)} MiB`, least: `${smallestDisk} MiB` })
        },
      },
    ],
  },
]

/** Memory in MiB; undefined if unknown, which must not stop the boot. */
function memoryOf({ files }: Pick<Machine['kernel'], 'files'>): number | undefined {
  try {
    const [, kibibytes] = /^MemTotal:\s+(\d+)/m.exec(files.readText('/proc/meminfo')) ?? []
    return kibibytes === undefined ? undefined : Math.floor(Number(kibibytes) / 1024)
  } catch {
    return undefined
  }
}
