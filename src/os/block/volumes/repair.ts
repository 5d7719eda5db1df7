/** Detects and repairs damaged XFS, as after a partial write. */
import type { Logger } from '../../../cosi/log.ts'
import { ProgramFailed } from '../../../supervise/run-program.ts'
import { failedWith } from '../../../wire/errno.ts'
import type { Machine } from '../../area.ts'
import { fileSystemProgram } from '../program.ts'

/** xfs_repair(8) exit code: the log must be replayed by mounting first; nothing was changed. */
const logIsDirty = 2

/** True for the mount(2) errors of XFS with broken structure, checksums or log. */
export const isDamaged = (error: unknown): boolean => failedWith(error, 'EUCLEAN', 'EBADMSG', 'EIO')

/**
 * Repairs XFS that cannot be mounted: a machine without a shell offers no other way to its data. A log that cannot be replayed
 * is zeroed, and the most recent changes are lost. Rejects with the end of xfs_repair's output.
 */
export async function repairXfs(machine: Pick<Machine, 'spawn'>, volume: string, device: string, log: Logger): Promise<void> {
  try {
    await fileSystemProgram(machine, ['xfs_repair', device])
  } catch (error) {
    if (!(error instanceof ProgramFailed) || error.status.code !== logIsDirty) throw error
    log.warn('file system log cannot be replayed, discarding its last changes', { volume, device })
    await fileSystemProgram(machine, ['xfs_repair', '-L', device])
  }
  log.info('file system repaired', { volume, device })
}
