import { type Method, readers, unary } from '../../../rpc/server/method.ts'
import { type DiskStat, parseDiskstats } from '../../../wire/proc/disks.ts'
import { parseLoadavg } from '../../../wire/proc/load.ts'
import { type NetworkDeviceStat, parseNetworkDevices } from '../../../wire/proc/network-devices.ts'
import { parseCpuinfo } from '../../../wire/proc/processors.ts'
import { parseSystemStat } from '../../../wire/proc/system.ts'
import type { Kernel } from '../../kernel.ts'

/** Counters of the machine from /proc and /sys: processors, load, disks, network devices. */
export function systemMethods({ files }: Pick<Kernel, 'files'>): Method[] {
  const text = (path: string) => files.readText(path)
  return [
    unary('machine.MachineService/SystemStat', readers, () => ({ messages: [parseSystemStat(text('/proc/stat'))] })),
    unary('machine.MachineService/LoadAvg', readers, () => {
      const { load1, load5, load15 } = parseLoadavg(text('/proc/loadavg'))
      return { messages: [{ load1, load5, load15 }] }
    }),
    unary('machine.MachineService/CPUInfo', readers, () => ({ messages: [{ cpuInfo: parseCpuinfo(text('/proc/cpuinfo')) }] })),
    unary('machine.MachineService/CPUFreqStats', readers, () => ({ messages: [{ cpuFreqStats: frequencies(files) }] })),
    unary('machine.MachineService/DiskStats', readers, () => {
      const devices = parseDiskstats(text('/proc/diskstats'))
      return { messages: [{ total: total<DiskStat>(devices, 'total'), devices }] }
    }),
    unary('machine.MachineService/NetworkDeviceStats', readers, () => {
      const devices = parseNetworkDevices(text('/proc/net/dev'))
      return { messages: [{ total: total<NetworkDeviceStat>(devices, 'total'), devices }] }
    }),
  ]
}

/** The sums over all devices. */
function total<T extends { name: string }>(devices: readonly T[], name: string): T | undefined {
  const [first] = devices
  if (!first) return undefined
  const sum: Record<string, unknown> = { name }
  for (const [key, value] of Object.entries(first))
    if (typeof value === 'number') sum[key] = devices.reduce((all, device) => all + (device[key as keyof T] as number), 0)
  return sum as T
}

/** Processors whose frequency the kernel governs; none in most virtual machines. */
function frequencies(files: Kernel['files']) {
  const folder = '/sys/devices/system/cpu'
  if (!files.exists(folder)) return []
  return files
    .list(folder)
    .filter((name) => /^cpu\d+$/.test(name) && files.exists(`${folder}/${name}/cpufreq`))
    .map((name) => {
      const value = (file: string) => files.readTextIfThere(`${folder}/${name}/cpufreq/${file}`)?.trim() ?? ''
      return {
        currentFrequency: Number(value('scaling_cur_freq')) * 1000,
        minimumFrequency: Number(value('scaling_min_freq')) * 1000,
        maximumFrequency: Number(value('scaling_max_freq')) * 1000,
        governor: value('scaling_governor'),
      }
    })
}
