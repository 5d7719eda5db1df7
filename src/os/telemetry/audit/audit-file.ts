import type { Kernel } from '../../kernel.ts'
import type { AuditKind } from './audit-log.ts'

const largest = 4 << 20

/** Where the audit log is kept over restarts of the machine; each older file has ".1" appended to its name. */
export const auditPaths: Readonly<Record<AuditKind, string>> = { changes: '/var/log/audit/api.log', reads: '/var/log/audit/api-reads.log' }

/** Appends to the files of the audit log. Without a disk to keep them on, the log lives in memory only. */
export function auditFile(
  { files }: Pick<Kernel, 'files'>,
  failed: (error: unknown) => void,
  paths = auditPaths,
): (lines: string, kind: AuditKind) => void {
  let reported = false
  return (lines, kind) => {
    const path = paths[kind]
    try {
      const folder = path.slice(0, path.lastIndexOf('/'))
      if (!files.exists(folder)) return
      const size = files.lstatIfThere(path)?.size ?? 0
      if (size > largest) files.move(path, `${path}.1`)
      files.append(path, lines, { mode: 0o600 })
      reported = false
    } catch (error) {
      if (!reported) failed(error)
      reported = true
    }
  }
}
