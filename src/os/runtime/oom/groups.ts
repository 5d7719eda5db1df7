/** Control groups by class, and their figures of memory. */
import { join } from 'node:path'
import { failedWith } from '../../../wire/errno.ts'
import { parsePressure } from '../../../wire/proc/pressure.ts'
import type { Kernel } from '../../kernel.ts'
import { type OomClass, oomClasses, pressureFigures } from '../documents/oom-expression.ts'

/** What reads control groups. */
export type GroupFiles = Pick<Kernel['files'], 'readTextIfThere' | 'listEntries'>

/** A control group of a class, by its path below the root of the tree. */
export interface ClassGroup {
  readonly path: string
  readonly class: OomClass
}

const { Besteffort, Burstable, Guaranteed, Podruntime, System } = oomClasses

/** The groups that each class consists of. */
const classes: readonly ClassGroup[] = [
  { path: 'kubepods/besteffort', class: Besteffort },
  { path: 'kubepods/burstable', class: Burstable },
  { path: 'kubepods/guaranteed', class: Guaranteed },
  { path: 'podruntime', class: Podruntime },
  { path: 'init', class: System },
  { path: 'system', class: System },
]

/** Whose children may be killed: never the group of init. */
const victims = classes.filter(({ path }) => path !== 'init')

/** The content of a file of a group; undefined when it is not there or the group was removed meanwhile. */
function textOf(files: GroupFiles, path: string): string | undefined {
  try {
    return files.readTextIfThere(path)
  } catch (error) {
    if (failedWith(error, 'ENODEV')) return undefined
    throw error
  }
}

/** Bytes of a file of a group; undefined when it is not there, or has no limit. */
function bytesOf(files: GroupFiles, path: string): number | undefined {
  const text = textOf(files, path)?.trim()
  return text && /^\d+$/.test(text) ? Number(text) : undefined
}

function childrenOf(files: GroupFiles, folder: string): string[] {
  try {
    return files.listEntries(folder).flatMap((entry) => (entry.isDirectory() ? entry.name : []))
  } catch (error) {
    if (failedWith(error, 'ENOENT', 'ENODEV')) return []
    throw error
  }
}

/** Guaranteed pods, which the kubelet puts beside the groups of the other classes. */
const guaranteedPods = (files: GroupFiles, root: string): ClassGroup[] =>
  childrenOf(files, join(root, 'kubepods'))
    .filter((name) => name.startsWith('pod'))
    .map((name) => ({ path: `kubepods/${name}`, class: Guaranteed }))

/** The groups whose figures are summed for each class. */
export const groupsOfClasses = (files: GroupFiles, root: string): ClassGroup[] => [...classes, ...guaranteedPods(files, root)]

/** The groups that may be killed. */
export const candidates = (files: GroupFiles, root: string): ClassGroup[] => [
  ...victims.flatMap(({ path, class: number }) =>
    childrenOf(files, join(root, path)).map((name) => ({ path: `${path}/${name}`, class: number })),
  ),
  ...guaranteedPods(files, root),
]

/** Bytes that a group has, had at most and may have; undefined is unknown or no limit. */
export const memoryOf = (files: GroupFiles, folder: string) => ({
  memory_max: bytesOf(files, join(folder, 'memory.max')),
  memory_current: bytesOf(files, join(folder, 'memory.current')),
  memory_peak: bytesOf(files, join(folder, 'memory.peak')),
})

/** Whether the kernel reports pressure of the tree: control groups of version 2, with PSI on. */
export const hasPressure = (files: GroupFiles, root: string): boolean => pressureText(files, root) !== undefined

/** With PSI off the file exists and reading it fails. */
function pressureText(files: GroupFiles, folder: string): string | undefined {
  try {
    return textOf(files, join(folder, 'memory.pressure'))
  } catch (error) {
    if (failedWith(error, 'EOPNOTSUPP', 'ENOTSUP')) return undefined
    throw error
  }
}

/** Pressure figures of a group by variable; zeros when it does not exist. */
export function pressureOf(files: GroupFiles, folder: string): Map<string, number> {
  const { some, full } = parsePressure(pressureText(files, folder) ?? '')
  const figures = [some, full].flatMap((line) => [line?.avg10 ?? 0, line?.avg60 ?? 0, line?.avg300 ?? 0, line?.total ?? 0])
  return new Map(pressureFigures.map((name, index) => [name, figures[index] ?? 0]))
}
