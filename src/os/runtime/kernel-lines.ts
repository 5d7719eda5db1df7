import type { Kernel } from '../kernel.ts'

const facilities = 'kern user mail daemon auth syslog lpr news uucp cron authpriv ftp'.split(' ')
const severities = 'emerg alert crit err warning notice info debug'.split(' ')

/** What to read of the kernel's log. */
interface KernelQuery {
  follow?: boolean
  /** Only new records. */
  tail?: boolean
  /** Only records after the one with this number. */
  after?: number
  /** Called with the number of each record. */
  seen?: (sequence: number) => void
  signal?: AbortSignal | undefined
}

/** The kernel's log, one line per record: facility, severity, time, message. */
export async function* kernelLines({ kmsg, time }: Pick<Kernel, 'kmsg' | 'time'>, query: KernelQuery): AsyncGenerator<Uint8Array> {
  // Records carry the time since boot. The boot time is only right while the clock is not stepped, so it is computed for each record.
  const bootedAt = Date.now() - Number(time.clock('boottime') / 1_000_000n)
  for await (const record of kmsg.readKernelLog(query)) {
    if (query.after !== undefined && record.sequence <= query.after) continue
    query.seen?.(record.sequence)
    const at = new Date(bootedAt + record.timestamp / 1000).toISOString()
    const facility = facilities[record.facility] ?? `local${record.facility - 16}`
    yield Buffer.from(`${facility}: ${severities[record.severity] ?? record.severity.toString()}: [${at}]: ${record.message}\n`)
  }
}
