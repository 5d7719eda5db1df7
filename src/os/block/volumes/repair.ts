/** XFS that is damaged, as after a write of which only a part reached the disk, and how it is mended. */
import type { Logger } from '../../../cosi/log.ts'
import { failedWith } from '../../../wire/errno.ts'
import type { Machine } from '../../area.ts'
import { ProgramFailed, runProgram } from '../program.ts'

/** xfs_repair(8): the log has to be replayed by mounting first; nothing was changed. */
const logIsDirty = 2

/** Whether this is what mount(2) says of XFS whose structure, checksums or log are broken. */
export const saysDamaged = (error: unknown): boolean => failedWith(error, 'EUCLEAN', 'EBADMSG', 'EIO')

/**
 * Repairs XFS that cannot be mounted: on a machine without a shell there is no other way to what is on it. A log that cannot
 * be replayed is given up, and with it the changes of the last moments. Rejects with what the repair said last.
 */
export async function repairXfs(parts: Pick<Machine, 'spawn'>, volume: string, device: string, log: Logger): Promise<void> {
  try {
    await runProgram(parts, ['xfs_repair', device])
  } catch (error) {
    if (!(error instanceof ProgramFailed) || error.code !== logIsDirty) throw error
    log.warn('log of the file system cannot be replayed, its last changes are given up', { volume, device })
    await runProgram(parts, ['xfs_repair', '-L', device])
  }
  log.info('file system is repaired', { volume, device })
}
