import { parseDiskstats } from '../../../wire/proc/disks.ts'
import { parseLoadavg } from '../../../wire/proc/load.ts'
import { parseMeminfo } from '../../../wire/proc/memory.ts'
import { parseNetworkDevices } from '../../../wire/proc/network-devices.ts'
import { parseSystemStat } from '../../../wire/proc/system.ts'
import type { Kernel } from '../../kernel.ts'
import type { Metric, Sample } from './exposition.ts'

const sector = 512
const memoryNames = ['MemTotal', 'MemFree', 'MemAvailable', 'Buffers', 'Cached', 'Shmem', 'Slab', 'Dirty', 'SwapTotal', 'SwapFree']
const mounts = ['/', '/var', '/system/state', '/run', '/tmp']

/** The kernel's counters: processors, memory, disks, links, file systems. Metric names are those of the node exporter. */
export function nodeMetrics({ files }: Pick<Kernel, 'files'>): Metric[] {
  const text = (path: string) => files.readText(path)
  const { load1, load5, load15 } = parseLoadavg(text('/proc/loadavg'))
  const stat = parseSystemStat(text('/proc/stat'))
  const memory = parseMeminfo(text('/proc/meminfo'))
  const disks = parseDiskstats(text('/proc/diskstats'))
  const links = parseNetworkDevices(text('/proc/net/dev'))
  const one = (name: string, help: string, type: Metric['type'], value: number): Metric => ({ name, help, type, samples: [[{}, value]] })
  const each = <T extends { name: string }>(name: string, help: string, all: readonly T[], value: (one: T) => number): Metric => ({
    name,
    help,
    type: 'counter',
    samples: all.map((device): Sample => [{ device: device.name }, value(device)]),
  })
  return [
    one('node_load1', 'Load over one minute.', 'gauge', load1),
    one('node_load5', 'Load over five minutes.', 'gauge', load5),
    one('node_load15', 'Load over fifteen minutes.', 'gauge', load15),
    one('node_boot_time_seconds', 'When the kernel was started, in seconds since 1970.', 'gauge', stat.bootTime),
    {
      name: 'node_cpu_seconds_total',
      help: 'Time of each processor by what it did.',
      type: 'counter',
      samples: stat.cpu.flatMap((times, cpu) =>
        Object.entries(times)
          .filter(([mode]) => !mode.startsWith('guest'))
          .map(([mode, seconds]): Sample => [{ cpu, mode: mode.toLowerCase() }, seconds]),
      ),
    },
    ...memoryNames.map((name) =>
      one(`node_memory_${name}_bytes`, `${name} of /proc/meminfo.`, 'gauge', (memory[name.toLowerCase()] ?? 0) * 1024),
    ),
    each('node_disk_read_bytes_total', 'Bytes read from a disk.', disks, (disk) => disk.readSectors * sector),
    each('node_disk_written_bytes_total', 'Bytes written to a disk.', disks, (disk) => disk.writeSectors * sector),
    each('node_network_receive_bytes_total', 'Bytes received by a link.', links, (link) => link.rxBytes),
    each('node_network_transmit_bytes_total', 'Bytes sent by a link.', links, (link) => link.txBytes),
    each('node_network_receive_errs_total', 'Packets a link received damaged.', links, (link) => link.rxErrors),
    each('node_network_transmit_errs_total', 'Packets a link could not send.', links, (link) => link.txErrors),
    ...fileSystems(files),
  ]
}

function fileSystems(files: Kernel['files']): Metric[] {
  const all = mounts.filter((path) => files.exists(path)).map((path) => [path, files.statfs(path)] as const)
  return [
    {
      name: 'node_filesystem_size_bytes',
      help: 'How much a file system may hold.',
      type: 'gauge',
      samples: all.map(([mountpoint, { size }]): Sample => [{ mountpoint }, size]),
    },
    {
      name: 'node_filesystem_avail_bytes',
      help: 'How much more a file system may hold.',
      type: 'gauge',
      samples: all.map(([mountpoint, { available }]): Sample => [{ mountpoint }, available]),
    },
  ]
}
