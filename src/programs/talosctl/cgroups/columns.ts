/** Columns about control groups: ready-made sets, and those a file describes. */
import * as v from 'valibot'
import { messageOf } from '../../../wire/error-message.ts'
import { UsageError } from '../failure.ts'
import type { Group } from './tree.ts'
import { forms, groupValue, share, shown } from './value.ts'

/** A column: its title and its cell for a group; `names` are the commands of processes by number. */
export interface Column {
  readonly name: string
  cell(group: Group, names: ReadonlyMap<number, string>): string
}

type Form = (typeof forms)[number]

const one = (name: string, file: string, form: Form = 'plain', key?: string): Column => ({
  name,
  cell: (group) => shown(groupValue(group, file, key), form),
})
const pair = (name: string, file: string, keys: readonly [string, string], form: Form): Column => ({
  name,
  cell: (group) => keys.map((key) => shown(groupValue(group, file, key), form)).join('/'),
})
const ratio = (name: string, part: string, whole: string): Column => ({
  name,
  cell: (group) => share(groupValue(group, part), groupValue(group, whole)),
})
const ofParent = (name: string, file: string, key: string): Column => ({
  name,
  cell: (group) => (group.parent ? share(groupValue(group, file, key), groupValue(group.parent, file, key)) : '-'),
})
const processes: Column = {
  name: 'Processes',
  cell: ({ files }, names) => {
    const pids = (files.get('cgroup.procs') ?? '').split('\n').filter(Boolean).map(Number)
    return [...new Set(pids.map((pid) => names.get(pid) ?? String(pid)))].join(' ')
  },
}

/** The ready-made sets by name. */
export const presets: Readonly<Record<string, readonly Column[]>> = {
  cpu: [
    one('CpuWeight', 'cpu.weight'),
    one('CpuNice', 'cpu.weight.nice'),
    one('CpuMax', 'cpu.max'),
    one('CpuUser', 'cpu.stat', 'microseconds', 'user_usec'),
    ofParent('User/%', 'cpu.stat', 'user_usec'),
    one('CpuSystem', 'cpu.stat', 'microseconds', 'system_usec'),
    ofParent('System/%', 'cpu.stat', 'system_usec'),
    one('Throttled', 'cpu.stat', 'microseconds', 'throttled_usec'),
  ],
  cpuset: [
    one('CpuSet', 'cpuset.cpus'),
    one('CpuSet(Eff)', 'cpuset.cpus.effective'),
    one('Mems', 'cpuset.mems'),
    one('Mems(Eff)', 'cpuset.mems.effective'),
  ],
  io: [
    pair('Bytes Read/Written', 'io.stat', ['*.rbytes', '*.wbytes'], 'bytes'),
    pair('ios Read/Write', 'io.stat', ['*.rios', '*.wios'], 'plain'),
    one('PressAvg10', 'io.pressure', 'plain', 'some.avg10'),
    one('PressAvg60', 'io.pressure', 'plain', 'some.avg60'),
    one('PressTotal', 'io.pressure', 'microseconds', 'some.total'),
  ],
  memory: [
    one('MemCurrent', 'memory.current', 'bytes'),
    one('MemPeak', 'memory.peak', 'bytes'),
    one('MemLow', 'memory.low', 'bytes'),
    ratio('Peak/Low', 'memory.peak', 'memory.low'),
    one('MemHigh', 'memory.high', 'bytes'),
    one('MemMin', 'memory.min', 'bytes'),
    ratio('Current/Min', 'memory.current', 'memory.min'),
    one('MemMax', 'memory.max', 'bytes'),
  ],
  process: [
    one('PidsCurrent', 'pids.current'),
    one('PidsPeak', 'pids.peak'),
    one('PidsMax', 'pids.max'),
    one('Procs', 'cgroup.procs', 'count'),
    one('Threads', 'cgroup.threads', 'count'),
    processes,
  ],
  psi: [
    one('MemCurrent', 'memory.current', 'bytes'),
    one('MemPsiSome10', 'memory.pressure', 'plain', 'some.avg10'),
    one('MemPsi10', 'memory.pressure', 'plain', 'full.avg10'),
    one('CpuPsi10', 'cpu.pressure', 'plain', 'some.avg10'),
    one('IoPsi10', 'io.pressure', 'plain', 'some.avg10'),
  ],
  swap: [
    one('SwapCurrent', 'memory.swap.current', 'bytes'),
    one('SwapPeak', 'memory.swap.peak', 'bytes'),
    one('SwapHigh', 'memory.swap.high', 'bytes'),
    one('SwapMax', 'memory.swap.max', 'bytes'),
    one('ZswapCurrent', 'memory.zswap.current', 'bytes'),
    one('ZswapMax', 'memory.zswap.max', 'bytes'),
    one('ZswapWriteback', 'memory.zswap.writeback'),
  ],
}

const Schema = v.strictObject({
  columns: v.pipe(
    v.array(
      v.strictObject({
        name: v.pipe(v.string(), v.minLength(1)),
        file: v.pipe(v.string(), v.regex(/^[\w.-]+$/)),
        key: v.optional(v.string()),
        form: v.optional(v.picklist(forms), 'plain'),
      }),
    ),
    v.minLength(1),
  ),
})

/** The columns that a schema describes: YAML with `columns: [{name, file, key, form}]`. Throws UsageError. */
export function columnsOf(text: string, path: string): Column[] {
  let value: unknown
  try {
    value = Bun.YAML.parse(text)
  } catch (error) {
    throw new UsageError(`"${path}" is not YAML: ${messageOf(error)}`)
  }
  const parsed = v.safeParse(Schema, value)
  if (!parsed.success) {
    const [issue] = parsed.issues
    const where = issue.path?.map(({ key }) => String(key)).join('.') ?? ''
    throw new UsageError(
      `"${path}": ${where && `${where}: `}${issue.message}: want "columns:", a list of {name: Current, file: memory.current, form: ${forms.join('|')}}, with key: user_usec, some.avg10 or "*.rbytes" for one value of many`,
    )
  }
  return parsed.output.columns.map(({ name, file, key, form }) => one(name, file, form, key))
}
