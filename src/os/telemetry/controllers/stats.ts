import { type Controller, defineController, exclusive } from '../../../cosi/controller.ts'
import type { SpecOf } from '../../../cosi/resource.ts'
import { parseMeminfo } from '../../../wire/proc/memory.ts'
import { parseSystemStat } from '../../../wire/proc/system.ts'
import type { Kernel } from '../../kernel.ts'
import { CPUStat } from '../resources/cpu-stat.ts'
import { MemoryStat, memoryStatKeys } from '../resources/memory-stat.ts'

/** Milliseconds between two readings. */
const interval = 30_000

/** The use of processors and memory since the start, read again every 30 seconds. */
export const observeStats = ({ files }: { files: Pick<Kernel['files'], 'readText'> }): Controller =>
  defineController({
    name: 'perf.StatsController',
    inputs: {},
    outputs: { processors: exclusive(CPUStat), memory: exclusive(MemoryStat) },
    reconcile({ processors, memory, wakeIn }) {
      const { bootTime, irq, softIrq, ...stat } = parseSystemStat(files.readText('/proc/stat'))
      processors.put('latest', stat)
      memory.put('latest', memoryStat(parseMeminfo(files.readText('/proc/meminfo'))))
      wakeIn(interval)
    },
  })

/** Keys of the spec whose line in /proc/meminfo has another name. */
const otherNames: Record<string, string> = { total: 'memtotal', available: 'memavailable' }

/** Values in kB and counts of huge pages; a line that this kernel does not have is 0. */
function memoryStat(meminfo: Record<string, number>): SpecOf<typeof MemoryStat> {
  const value = (key: string) => meminfo[otherNames[key] ?? key.toLowerCase()] ?? 0
  const spec = Object.fromEntries(memoryStatKeys.map((key) => [key, value(key)])) as SpecOf<typeof MemoryStat>
  return { ...spec, used: value('total') - (meminfo.memfree ?? 0) }
}
