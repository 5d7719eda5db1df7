import type { Supervisor } from '../../../supervise/supervisor.ts'
import { parseProcessStatus } from '../../../wire/proc/process.ts'
import type { Kernel } from '../../kernel.ts'
import type { Metric, Sample } from './exposition.ts'

/** The memory of init and of each service's first process. */
export function memoryMetrics({ files }: Pick<Kernel, 'files'>, supervisor: Pick<Supervisor, 'list'>): Metric[] {
  const resident = (pid: number | 'self') => {
    const text = files.readTextIfThere(`/proc/${pid}/status`)
    return text ? Number.parseInt(parseProcessStatus(text).get('VmRSS') ?? '0', 10) * 1024 : undefined
  }
  const all = [{ id: 'machined', pid: 'self' as const }, ...supervisor.list().filter(({ id }) => id !== 'machined')]
  return [
    {
      name: 'ichor_process_resident_memory_bytes',
      help: 'Memory of a service’s first process.',
      type: 'gauge',
      samples: all.flatMap(({ id, pid }): Sample[] => {
        const bytes = pid === undefined ? undefined : resident(pid)
        return bytes === undefined ? [] : [[{ service: id }, bytes]]
      }),
    },
  ]
}
