import { DecodeError } from '../decode-error.ts'
import { decimal, fields, lines } from './lines.ts'
import { ticksPerSecond } from './system.ts'

/** The contents of /proc/[pid]/stat. */
export interface ProcessStat {
  pid: number
  command: string
  /** One letter: R, S, D, Z, T, t, X, I. */
  state: string
  ppid: number
  processGroup: number
  session: number
  priority: number
  nice: number
  threads: number
  /** Seconds of processor time. */
  cpuTime: number
  /** Clock ticks after boot. */
  startTime: number
  /** Bytes. */
  virtualMemory: number
  /** Pages. */
  residentPages: number
}

/** Parses /proc/[pid]/stat (proc_pid_stat(5)). */
export function parseProcessStat(text: string): ProcessStat {
  // The command may contain anything, also ") ": the last parenthesis counts.
  const line = text.slice(0, 8192)
  const end = line.lastIndexOf(') ')
  const [before, pid] = /^(\d{1,10}) \(/.exec(line) ?? ['']
  const words = fields(line.slice(end + 2))
  if (pid === undefined || end < before.length || words.length < 22) throw new DecodeError('process stat', 0, 'too few fields')
  const at = (index: number) => decimal('process stat', words[index], 0)
  return {
    pid: Number(pid),
    command: line.slice(before.length, end),
    state: words[0] ?? '',
    ppid: at(1),
    processGroup: at(2),
    session: at(3),
    cpuTime: (at(11) + at(12)) / ticksPerSecond,
    priority: at(15),
    nice: at(16),
    threads: at(17),
    startTime: at(19),
    virtualMemory: at(20),
    residentPages: at(21),
  }
}

/** Parses /proc/[pid]/status into names and values (`Uid` → `0 0 0 0`), with inner blanks collapsed. */
export function parseProcessStatus(text: string): Map<string, string> {
  const found = new Map<string, string>()
  for (const { text: line } of lines('process status', text, 4096)) {
    const colon = line.indexOf(':')
    if (colon > 0)
      found.set(
        line.slice(0, colon),
        line
          .slice(colon + 1)
          .trim()
          .replace(/\s+/g, ' '),
      )
  }
  return found
}

/** Parses /proc/[pid]/cmdline: the arguments, none for a kernel thread. */
export function parseCommandLine(text: string): string[] {
  const bounded = text.slice(0, 1 << 21)
  return bounded === '' ? [] : bounded.replace(/\0$/, '').split('\0')
}
