import { DecodeError } from '../decode-error.ts'
import { decimal, fields, lines } from './lines.ts'

/** Clock ticks per second in /proc (USER_HZ), the same on every supported machine. */
export const ticksPerSecond = 100

/** The time of a processor by state, in seconds. */
export interface CpuTimes {
  user: number
  nice: number
  system: number
  idle: number
  iowait: number
  irq: number
  softIrq: number
  steal: number
  guest: number
  guestNice: number
}

/** Soft interrupts by kind. */
export interface SoftIrqs {
  hi: number
  timer: number
  netTx: number
  netRx: number
  block: number
  blockIoPoll: number
  tasklet: number
  sched: number
  hrtimer: number
  rcu: number
}

/** The contents of /proc/stat. */
export interface SystemStat {
  /** Seconds since 1970. */
  bootTime: number
  cpuTotal: CpuTimes
  cpu: CpuTimes[]
  irqTotal: number
  irq: number[]
  contextSwitches: number
  processCreated: number
  processRunning: number
  processBlocked: number
  softIrqTotal: number
  softIrq: SoftIrqs
}

function times(words: readonly string[], offset: number): CpuTimes {
  const at = (index: number) => (words[index] === undefined ? 0 : decimal('stat', words[index], offset) / ticksPerSecond)
  return {
    user: at(0),
    nice: at(1),
    system: at(2),
    idle: at(3),
    iowait: at(4),
    irq: at(5),
    softIrq: at(6),
    steal: at(7),
    guest: at(8),
    guestNice: at(9),
  }
}

/** Parses /proc/stat. */
export function parseSystemStat(text: string): SystemStat {
  const stat: SystemStat = {
    bootTime: 0,
    cpuTotal: times([], 0),
    cpu: [],
    irqTotal: 0,
    irq: [],
    contextSwitches: 0,
    processCreated: 0,
    processRunning: 0,
    processBlocked: 0,
    softIrqTotal: 0,
    softIrq: { hi: 0, timer: 0, netTx: 0, netRx: 0, block: 0, blockIoPoll: 0, tasklet: 0, sched: 0, hrtimer: 0, rcu: 0 },
  }
  let cpus = 0
  for (const { text: line, offset } of lines('stat', text, 65536)) {
    const [name = '', ...words] = fields(line)
    const all = () => words.map((word) => decimal('stat', word, offset))
    const [first = 0, ...rest] = name.startsWith('cpu') ? [] : all()
    if (name === 'cpu') stat.cpuTotal = times(words, offset)
    else if (/^cpu\d+$/.test(name)) stat.cpu.push(times(words, offset))
    else if (name === 'intr') [stat.irqTotal, stat.irq] = [first, rest]
    else if (name === 'ctxt') stat.contextSwitches = first
    else if (name === 'btime') stat.bootTime = first
    else if (name === 'processes') stat.processCreated = first
    else if (name === 'procs_running') stat.processRunning = first
    else if (name === 'procs_blocked') stat.processBlocked = first
    else if (name === 'softirq') {
      stat.softIrqTotal = first
      const [hi = 0, timer = 0, netTx = 0, netRx = 0, block = 0, blockIoPoll = 0, tasklet = 0, sched = 0, hrtimer = 0, rcu = 0] = rest
      stat.softIrq = { hi, timer, netTx, netRx, block, blockIoPoll, tasklet, sched, hrtimer, rcu }
    }
    if (name === 'cpu') cpus++
  }
  if (cpus === 0) throw new DecodeError('stat', 0, 'no line "cpu"')
  return stat
}
