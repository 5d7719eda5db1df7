/** Arrays of the kernel's MD driver, by Debian's mdadm(8). */
import { runProgram } from '../../../supervise/run-program.ts'
import type { Machine } from '../../area.ts'
import type { SysFiles } from '../sysfs.ts'

type Spawns = Pick<Machine, 'spawn'>

/** Milliseconds: reads and writes the superblocks of an array's members. */
const timeout = 60_000

const folder = '/sys/class/block'

const mdadm = (machine: Spawns, purpose: string, ...args: string[]): Promise<string> =>
  runProgram(machine, ['mdadm', ...args], { timeout, purpose })

/** Hands a member to its array, which starts with the last one. */
export const addMember = async (machine: Spawns, path: string): Promise<void> => {
  // Whatever machine an array was made on, it keeps its name.
  await mdadm(machine, `mdadm --incremental ${path}`, '--incremental', '--homehost=any', path)
}

/** Starts the arrays of which members are missing, where the others are enough. */
export const startIncomplete = async (machine: Spawns): Promise<void> => {
  await mdadm(machine, 'mdadm --incremental --run --scan', '--incremental', '--run', '--scan')
}

/** Stops an array. Rejects when it is in use. */
export const stopArray = async (machine: Spawns, path: string): Promise<void> => {
  await mdadm(machine, `mdadm --stop ${path}`, '--stop', path)
}

/** An array that the kernel knows. */
export interface KernelArray {
  readonly name: string
  /** Whether it has a device to read from. */
  readonly started: boolean
  /** Number of its members that are missing or failed. */
  readonly missing: number
}

/** Arrays by /sys (Documentation/admin-guide/md.rst); those being removed are left out. */
export function kernelArrays(files: Pick<SysFiles, 'list' | 'readTextIfThere'>): KernelArray[] {
  return files.list(folder).flatMap((name) => {
    const text = (field: string) => files.readTextIfThere(`${folder}/${name}/md/${field}`)?.trim()
    const state = /^md\d/.test(name) ? text('array_state') : undefined
    if (state === undefined || state === 'clear') return []
    return [{ name, started: state !== 'inactive', missing: Number(text('degraded') ?? 0) || 0 }]
  })
}
