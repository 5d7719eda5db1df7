/** The kernel's counters, under the names of the node exporter. A source that this kernel does not have is left out. */
import { parseDiskstats } from '../../../wire/proc/disks.ts'
import { parseLoadavg } from '../../../wire/proc/load.ts'
import { parseMemoryLines } from '../../../wire/proc/memory.ts'
import { parseNetworkDevices } from '../../../wire/proc/network-devices.ts'
import { parsePressure } from '../../../wire/proc/pressure.ts'
import { parseSystemStat } from '../../../wire/proc/system.ts'
import type { Kernel } from '../../kernel.ts'
import { gauge, type Metric, type Sample } from './exposition.ts'

const sector = 512
/** Partitions and disks in memory: what they do is counted with their disk, or is no disk's work. */
const noDisk = /^(ram|zram|loop|fd|(h|s|v|xv)d[a-z]+|nvme\d+n\d+p|mmcblk\d+p)\d+$/

type Files = Pick<Kernel['files'], 'readText' | 'readTextIfThere'>

const counter = (name: string, help: string, value: number): Metric => ({ name, help, type: 'counter', samples: [[{}, value]] })

/** Processors and scheduling. */
export function cpuMetrics(files: Files): Metric[] {
  const stat = parseSystemStat(files.readText('/proc/stat'))
  return [
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
    gauge('node_boot_time_seconds', 'When the kernel was started, in seconds since 1970.', stat.bootTime),
    counter('node_context_switches_total', 'Context switches.', stat.contextSwitches),
    counter('node_forks_total', 'Processes created.', stat.processCreated),
    counter('node_intr_total', 'Interrupts.', stat.irqTotal),
    gauge('node_procs_running', 'Processes that run or could.', stat.processRunning),
    gauge('node_procs_blocked', 'Processes that wait for a disk.', stat.processBlocked),
  ]
}

/** Load averages. */
export function loadMetrics(files: Files): Metric[] {
  const { load1, load5, load15 } = parseLoadavg(files.readText('/proc/loadavg'))
  return [
    gauge('node_load1', 'Load over one minute.', load1),
    gauge('node_load5', 'Load over five minutes.', load5),
    gauge('node_load15', 'Load over fifteen minutes.', load15),
  ]
}

/** Every line of /proc/meminfo. */
export function memoryUseMetrics(files: Files): Metric[] {
  return parseMemoryLines(files.readText('/proc/meminfo')).map(({ name, value, unit }) => {
    const field = name.replace(/[^A-Za-z0-9_]+/g, '_').replace(/_$/, '')
    return unit === 'kB'
      ? gauge(`node_memory_${field}_bytes`, `${name} of /proc/meminfo.`, value * 1024)
      : gauge(`node_memory_${field}`, `${name} of /proc/meminfo.`, value)
  })
}

/** Disks, without partitions. */
export function diskMetrics(files: Files): Metric[] {
  const disks = parseDiskstats(files.readText('/proc/diskstats')).filter(({ name }) => !noDisk.test(name))
  type Disk = (typeof disks)[number]
  const each = (name: string, help: string, value: (disk: Disk) => number, type: Metric['type'] = 'counter'): Metric => ({
    name: `node_disk_${name}`,
    help,
    type,
    samples: disks.map((disk): Sample => [{ device: disk.name }, value(disk)]),
  })
  return [
    each('read_bytes_total', 'Bytes read from a disk.', (disk) => disk.readSectors * sector),
    each('written_bytes_total', 'Bytes written to a disk.', (disk) => disk.writeSectors * sector),
    each('reads_completed_total', 'Reads that a disk has completed.', (disk) => disk.readCompleted),
    each('writes_completed_total', 'Writes that a disk has completed.', (disk) => disk.writeCompleted),
    each('read_time_seconds_total', 'Time of all reads together.', (disk) => disk.readTimeMs / 1000),
    each('write_time_seconds_total', 'Time of all writes together.', (disk) => disk.writeTimeMs / 1000),
    each('io_time_seconds_total', 'Time in which a disk was busy.', (disk) => disk.ioTimeMs / 1000),
    each('io_time_weighted_seconds_total', 'Time of all requests together.', (disk) => disk.ioTimeWeightedMs / 1000),
    each('io_now', 'Requests under way.', (disk) => disk.ioInProgress, 'gauge'),
  ]
}

/** Links. */
export function networkMetrics(files: Files): Metric[] {
  const links = parseNetworkDevices(files.readText('/proc/net/dev'))
  type Link = (typeof links)[number]
  const each = (name: string, help: string, value: (link: Link) => number): Metric => ({
    name: `node_network_${name}`,
    help,
    type: 'counter',
    samples: links.map((link): Sample => [{ device: link.name }, value(link)]),
  })
  const isUp = ({ name }: Link) => files.readTextIfThere(`/sys/class/net/${name}/operstate`)?.trim() === 'up'
  return [
    each('receive_bytes_total', 'Bytes received by a link.', (link) => link.rxBytes),
    each('transmit_bytes_total', 'Bytes sent by a link.', (link) => link.txBytes),
    each('receive_packets_total', 'Packets received by a link.', (link) => link.rxPackets),
    each('transmit_packets_total', 'Packets sent by a link.', (link) => link.txPackets),
    each('receive_errs_total', 'Packets a link received damaged.', (link) => link.rxErrors),
    each('transmit_errs_total', 'Packets a link could not send.', (link) => link.txErrors),
    each('receive_drop_total', 'Packets a link received and dropped.', (link) => link.rxDropped),
    each('transmit_drop_total', 'Packets a link dropped before they were sent.', (link) => link.txDropped),
    {
      name: 'node_network_up',
      help: 'Whether the state of a link is "up".',
      type: 'gauge',
      samples: links.map((link): Sample => [{ device: link.name }, isUp(link) ? 1 : 0]),
    },
  ]
}

/** Pressure stall information, in seconds. A kernel without it, or with it turned off, has no readable files. */
export function pressureMetrics(files: Files): Metric[] {
  const of = (resource: string) => {
    try {
      return parsePressure(files.readTextIfThere(`/proc/pressure/${resource}`) ?? '')
    } catch {
      return {}
    }
  }
  const [cpu, io, memory] = [of('cpu'), of('io'), of('memory')]
  const one = (name: string, help: string, line: { total: number } | undefined): Metric[] =>
    line ? [counter(`node_pressure_${name}_seconds_total`, help, line.total / 1e6)] : []
  return [
    ...one('cpu_waiting', 'Time in which a process waited for a processor.', cpu.some),
    ...one('io_waiting', 'Time in which a process waited for a disk.', io.some),
    ...one('io_stalled', 'Time in which every process waited for a disk.', io.full),
    ...one('memory_waiting', 'Time in which a process waited for memory.', memory.some),
    ...one('memory_stalled', 'Time in which every process waited for memory.', memory.full),
  ]
}

const vmstatFields = /^(oom_kill|pgpgin|pgpgout|pswpin|pswpout|pgfault|pgmajfault) (\d+)$/gm

/** Paging, open files and tracked connections. */
export function limitMetrics(files: Files): Metric[] {
  const [allocated, , maximum] = (files.readTextIfThere('/proc/sys/fs/file-nr') ?? '').trim().split(/\s+/).map(Number)
  const setting = (name: string) => {
    const text = files.readTextIfThere(`/proc/sys/net/netfilter/${name}`)
    return text === undefined ? undefined : Number.parseInt(text, 10)
  }
  return [
    ...[...(files.readTextIfThere('/proc/vmstat') ?? '').matchAll(vmstatFields)].map(
      ([, name, value]): Metric => ({
        name: `node_vmstat_${name}`,
        help: `${name} of /proc/vmstat.`,
        type: 'unknown',
        samples: [[{}, Number(value)]],
      }),
    ),
    gauge('node_filefd_allocated', 'Open files.', allocated),
    gauge('node_filefd_maximum', 'How many files may be open.', maximum),
    gauge('node_nf_conntrack_entries', 'Connections that are tracked.', setting('nf_conntrack_count')),
    gauge('node_nf_conntrack_entries_limit', 'How many connections may be tracked.', setting('nf_conntrack_max')),
  ]
}
