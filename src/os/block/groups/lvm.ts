/** Volume groups of LVM, by Debian's lvm(8). */
import { runProgram } from '../../../supervise/run-program.ts'
import { DecodeError } from '../../../wire/decode-error.ts'
import type { Machine } from '../../area.ts'

type Spawns = Pick<Machine, 'spawn'>

/** Milliseconds: reads the metadata of every disk, of which one may be slow. */
const timeout = 120_000

/**
 * The root is read-only, so nothing is kept of older metadata; device nodes are made without udevd, which has no rules for LVM
 * here; no daemon watches mirrors, and the programs that check pools before use are not in the image.
 */
const settings = [
  'devices{use_devicesfile=0 obtain_device_list_from_udev=0}',
  'backup{backup=0 archive=0}',
  'activation{udev_sync=0 udev_rules=0 monitoring=0}',
  'global{thin_check_executable="" cache_check_executable="" use_lvmpolld=0}',
].join(' ')

const lvm = (machine: Spawns, command: string, ...args: string[]): Promise<string> =>
  runProgram(machine, ['lvm', command, '--config', settings, ...args], { timeout, purpose: `lvm ${command} ${args.at(-1)}` })

/** The group of a physical volume, and whether all its physical volumes are there. */
export interface FoundGroup {
  readonly name: string
  readonly complete: boolean
}

const line = /^LVM_VG_NAME_(COMPLETE|INCOMPLETE)='([A-Za-z0-9+_.][A-Za-z0-9+_.-]{0,126})'$/

/** Reads the output of `pvscan --udevoutput`; undefined for a physical volume without a group. Throws DecodeError. */
export function parseGroup(output: string): FoundGroup | undefined {
  const found = output.split('\n').filter((each) => each.startsWith('LVM_VG_NAME_'))
  const [first] = found
  if (first === undefined) return undefined
  const [, state, name] = line.exec(first) ?? []
  if (found.length > 1 || !state || !name) throw new DecodeError('output of pvscan', 0, found.join(' ').slice(0, 200))
  return { name, complete: state === 'COMPLETE' }
}

/** Reports a physical volume to LVM and returns its group. */
export const scanPhysicalVolume = async (machine: Spawns, path: string): Promise<FoundGroup | undefined> =>
  parseGroup(await lvm(machine, 'pvscan', '--cache', '--listvg', '--checkcomplete', '--autoactivation', 'event', '--udevoutput', path))

/** Activates the logical volumes of a group, except for those that its administrator has set not to be. */
export const activateGroup = async (machine: Spawns, group: string): Promise<void> => {
  await lvm(machine, 'vgchange', '--activate', 'ay', '--autoactivation', 'event', group)
}

/** Ends the use of the logical volumes of the group to which a physical volume belongs. Rejects when one is mounted. */
export async function deactivateGroupOf(machine: Spawns, path: string): Promise<void> {
  const group = await scanPhysicalVolume(machine, path)
  if (group) await lvm(machine, 'vgchange', '--activate', 'n', group.name)
}
