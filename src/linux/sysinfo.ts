import { check, libc } from './libc.ts'

const c = libc({
  sysinfo: { args: ['ptr'], returns: 'i32' },
  sysconf: { args: ['i32'], returns: 'i64' },
})

/** Memory in bytes and uptime in seconds. */
export interface SystemInfo {
  uptime: number
  totalMemory: number
  freeMemory: number
  totalSwap: number
  freeSwap: number
  processes: number
}

/** sysinfo(2). */
export function sysinfo(): SystemInfo {
  const data = Buffer.alloc(128)
  check('sysinfo', c().sysinfo(data))
  const unit = data.readUInt32LE(104)
  const long = (offset: number) => Number(data.readBigUInt64LE(offset))
  return {
    uptime: long(0),
    totalMemory: long(32) * unit,
    freeMemory: long(40) * unit,
    totalSwap: long(64) * unit,
    freeSwap: long(72) * unit,
    processes: data.readUInt16LE(80),
  }
}

/** Clock ticks a second, the unit of times in /proc. */
export function clockTicks(): number {
  return Number(c().sysconf(2)) // _SC_CLK_TCK
}

/** Bytes of a memory page. */
export function pageSize(): number {
  return Number(c().sysconf(30)) // _SC_PAGESIZE
}

/** Processors that are on. */
export function processors(): number {
  return Number(c().sysconf(84)) // _SC_NPROCESSORS_ONLN
}
