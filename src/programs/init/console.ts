import { createLogger, formatEntry, type Logger } from '../../cosi/log.ts'
import { writeKernelLog } from '../../linux/system/kmsg.ts'
import type { LastProblem } from '../../os/runtime/last-problem.ts'
import type { LogRing } from '../../supervise/log-ring.ts'

let toKernel = false

/** From here on, messages go to the kernel log, which shows them on every console and keeps them for dmesg. */
export function sayToKernel(): void {
  toKernel = true
}

/** Writes one line to the console; a console that is gone is no reason to stop. */
export function say(text: string): void {
  try {
    if (toKernel) {
      writeKernelLog(text)
      return
    }
  } catch {
    // without a kernel log there is still the console
  }
  try {
    process.stdout.write(`${text}\n`)
  } catch {
    // nobody is looking
  }
}

/** A logger that writes changes to the console, with `verbose` everything, and everything to the log that the API serves. */
export function consoleLogger(log: LogRing, problem: LastProblem, verbose: () => boolean = () => false): Logger {
  return createLogger((entry) => {
    problem.note(entry)
    const line = `${entry.time.toISOString()} ${formatEntry(entry)}`
    if (entry.level !== 'debug' || verbose()) say(`[ichor] ${line}`)
    log.line(line)
  })
}

/** A logger for controllers: everything with its level to their own log, and on to the machine's. */
export function controllersLogger(log: LogRing, machine: Logger): Logger {
  return createLogger((entry) => {
    log.line(`${entry.time.toISOString()} ${entry.level.toUpperCase().padEnd(5)} ${formatEntry({ ...entry, level: 'info' })}`)
    machine[entry.resolves ? 'resolved' : entry.level](entry.message, entry.fields)
  })
}
