/** Samples of memory pressure and use, and the variables of a trigger expression made of two of them. */
import { join } from 'node:path'
import { classFigures, oomClasses, pressureFigures, type TriggerValues } from '../documents/oom-expression.ts'
import { type GroupFiles, groupsOfClasses, memoryOf, pressureOf } from './groups.ts'

/** Figures at one moment of the monotonic clock, in milliseconds. */
export interface Sample {
  readonly at: number
  /** Of the whole machine by name. */
  readonly machine: ReadonlyMap<string, number>
  /** By name and class; without bytes where they were not read. */
  readonly classes: ReadonlyMap<string, ReadonlyMap<number, number>>
}

/** Milliseconds since a trigger that never was: the longest duration there is (2^63 ns). */
const never = 2 ** 63 / 1e6

/**
 * Reads the figures of the machine and of each class. Bytes are three more files of every group, which quadruples the cost of a
 * sample: they are read only where something uses them.
 */
export function takeSample(files: GroupFiles, root: string, at: number, { bytes }: { bytes: boolean }): Sample {
  const classes = new Map(
    (bytes ? classFigures : pressureFigures).map((name) => [
      name,
      new Map<number, number>(Object.values(oomClasses).map((number) => [number, 0])),
    ]),
  )
  for (const { path, class: number } of groupsOfClasses(files, root)) {
    const folder = join(root, path)
    for (const [name, figure] of [...pressureOf(files, folder), ...(bytes ? Object.entries(memoryOf(files, folder)) : [])]) {
      const sums = classes.get(name)
      sums?.set(number, (sums.get(number) ?? 0) + (figure ?? 0))
    }
  }
  return { at, machine: pressureOf(files, root), classes }
}

/** The variables of a trigger expression; changes are per second, and 0 without an earlier sample. */
export function triggerValues(now: Sample, before: Sample | undefined, triggeredAt: number | undefined): TriggerValues {
  const seconds = before ? (now.at - before.at) / 1000 : 0
  const change = (figure: number, old: number | undefined) => (seconds > 0 && old !== undefined ? (figure - old) / seconds : 0)
  const values: Record<string, number | ReadonlyMap<number, number>> = {}
  for (const [name, figure] of now.machine) {
    values[name] = figure
    values[`d_${name}`] = change(figure, before?.machine.get(name))
  }
  for (const [name, sums] of now.classes) {
    const old = before?.classes.get(name)
    values[`qos_${name}`] = sums
    values[`d_qos_${name}`] = new Map([...sums].map(([number, figure]) => [number, change(figure, old?.get(number))]))
  }
  values.time_since_trigger = triggeredAt === undefined ? never : now.at - triggeredAt
  return values
}

/** The variables as JSON, for people: classes by number, the duration in nanoseconds. */
export const contextOf = (values: TriggerValues): string =>
  JSON.stringify(
    Object.fromEntries(
      Object.entries(values).map(([name, value]) => {
        if (typeof value !== 'number') return [name, Object.fromEntries(value)]
        return [name, name === 'time_since_trigger' ? value * 1e6 : value]
      }),
    ),
  )
