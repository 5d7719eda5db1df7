import { Command } from 'commander'
import type { machine } from '../../../../rpc/messages.ts'
import type { Cluster } from '../../cluster.ts'
import type { Io } from '../../io.ts'
import { type OutputFlags, outputOption, structured, withNodes } from '../../output/output.ts'
import { messageSchema } from '../../output/schema.ts'
import { table } from '../../output/table.ts'

interface MemoryOptions extends OutputFlags {
  verbose?: boolean
}

/** talosctl memory */
export const memory = (io: Io, cluster: Cluster) =>
  new Command()
    .description('Show how much memory each node has and uses, in MiB.')
    .option('-v, --verbose', 'show every figure the kernel has')
    .addOption(outputOption(messageSchema('machine.MachineService/Memory')))
    .action((options: MemoryOptions) => runMemory(io, cluster, options))

/** Prints one line per node, or all figures. */
export async function runMemory(io: Io, cluster: Cluster, options: MemoryOptions): Promise<void> {
  const messages = await cluster.ask('machine.MachineService/Memory', {})
  const peer = await cluster.peer()
  if (structured(io, options.output, withNodes(cluster, peer, messages))) return
  if (options.verbose) {
    for (const message of messages) io.stdout.write(verbose(cluster.nodeOf(message, peer), message.meminfo))
    return
  }
  const rows = messages.map((message) => [cluster.nodeOf(message, peer), ...columns(message.meminfo)])
  io.stdout.write(table([['NODE', 'TOTAL', 'USED', 'FREE', 'SHARED', 'BUFFERS', 'CACHE', 'AVAILABLE'], ...rows]))
}

function columns(info: machine.MemInfo | undefined): number[] {
  if (!info) return []
  const { memtotal, memfree, buffers, cached, shmem, memavailable } = info
  return [memtotal, memtotal - memfree - cached - buffers, memfree, shmem, buffers, cached, memavailable].map((kilobytes) =>
    Math.trunc(kilobytes / 1024),
  )
}

const figures: [keyof machine.MemInfo, string, 'kB' | ''][] = [
  ['memtotal', 'MemTotal', 'kB'],
  ['memfree', 'MemFree', 'kB'],
  ['memavailable', 'MemAvailable', 'kB'],
  ['buffers', 'Buffers', 'kB'],
  ['cached', 'Cached', 'kB'],
  ['swapcached', 'SwapCached', 'kB'],
  ['active', 'Active', 'kB'],
  ['inactive', 'Inactive', 'kB'],
  ['activeanon', 'ActiveAnon', 'kB'],
  ['inactiveanon', 'InactiveAnon', 'kB'],
  ['activefile', 'ActiveFile', 'kB'],
  ['inactivefile', 'InactiveFile', 'kB'],
  ['unevictable', 'Unevictable', 'kB'],
  ['mlocked', 'Mlocked', 'kB'],
  ['swaptotal', 'SwapTotal', 'kB'],
  ['swapfree', 'SwapFree', 'kB'],
  ['dirty', 'Dirty', 'kB'],
  ['writeback', 'Writeback', 'kB'],
  ['anonpages', 'AnonPages', 'kB'],
  ['mapped', 'Mapped', 'kB'],
  ['shmem', 'Shmem', 'kB'],
  ['slab', 'Slab', 'kB'],
  ['sreclaimable', 'SReclaimable', 'kB'],
  ['sunreclaim', 'SUnreclaim', 'kB'],
  ['kernelstack', 'KernelStack', 'kB'],
  ['pagetables', 'PageTables', 'kB'],
  ['nfsunstable', 'NFSUnstable', 'kB'],
  ['bounce', 'Bounce', 'kB'],
  ['writebacktmp', 'WritebackTmp', 'kB'],
  ['commitlimit', 'CommitLimit', 'kB'],
  ['committedas', 'CommittedAS', 'kB'],
  ['vmalloctotal', 'VmallocTotal', 'kB'],
  ['vmallocused', 'VmallocUsed', 'kB'],
  ['vmallocchunk', 'VmallocChunk', 'kB'],
  ['hardwarecorrupted', 'HardwareCorrupted', 'kB'],
  ['anonhugepages', 'AnonHugePages', 'kB'],
  ['shmemhugepages', 'ShmemHugePages', 'kB'],
  ['shmempmdmapped', 'ShmemPmdMapped', 'kB'],
  ['cmatotal', 'CmaTotal', 'kB'],
  ['cmafree', 'CmaFree', 'kB'],
  ['hugepagestotal', 'HugePagesTotal', ''],
  ['hugepagesfree', 'HugePagesFree', ''],
  ['hugepagesrsvd', 'HugePagesRsvd', ''],
  ['hugepagessurp', 'HugePagesSurp', ''],
  ['hugepagesize', 'Hugepagesize', 'kB'],
  ['directmap4k', 'DirectMap4k', 'kB'],
  ['directmap2m', 'DirectMap2M', 'kB'],
  ['directmap1g', 'DirectMap1G', 'kB'],
]

function verbose(node: string, info: machine.MemInfo | undefined): string {
  const lines = figures.map(([key, name, unit]) => `${name}: ${info?.[key] ?? 0}${unit && ` ${unit}`}\n`)
  return `NODE: ${node}\n${lines.join('')}`
}
