import { parseMeminfo } from '../../../wire/proc/memory.ts'
import type { Kernel } from '../../kernel.ts'

interface KernelCalls {
  readonly mode: Kernel['mode']
  readonly files: Pick<Kernel['files'], 'readTextIfThere'>
  readonly cgroup: Pick<Kernel['cgroup'], 'memoryLimit'>
}

/**
 * Bytes of memory that the kubelet counts as the node's although a container node may not use them: it sees all memory of the host.
 * 0 on a machine, and in a container without a limit.
 */
export function hiddenMemory({ mode, files, cgroup }: KernelCalls): number {
  if (mode !== 'container') return 0
  const limit = cgroup.memoryLimit()
  const { memtotal = 0 } = parseMeminfo(files.readTextIfThere('/proc/meminfo') ?? '')
  return limit === undefined ? 0 : Math.max(0, memtotal * 1024 - limit)
}
