/** A record of the kernel's log as a JSON object, with the keys of the field. */
import type { KernelRecord } from '../../../wire/proc/kmsg.ts'

const priorities = 'emerg alert crit err warning notice info debug'.split(' ')
const levels = 'error error error error warn info info debug'.split(' ')
const facilities = 'kern user mail daemon auth syslog lpr news uucp cron authpriv'.split(' ')
/** The facilities local0 to local7 begin here (sys/syslog.h). */
const local0 = 16

/** One record; `bootedAt` is the wall clock at the start of the machine in milliseconds, as of now. */
export function kernelMessage({ facility, severity, sequence, timestamp, message: msg }: KernelRecord, bootedAt: number): string {
  return JSON.stringify({
    clock: timestamp,
    facility: facilities[facility] ?? (facility >= local0 ? `local${facility - local0}` : String(facility)),
    msg,
    priority: priorities[severity],
    seq: sequence,
    'talos-level': levels[severity],
    'talos-time': new Date(bootedAt + timestamp / 1000).toISOString(),
  })
}
