import type { Kernel } from '../../kernel.ts'

const largest = 4 << 20

/** Where the audit log stays when the machine starts anew; the file before it has ".1" behind its name. */
export const auditPath = '/var/log/audit/api.log'

/** Appends to the file of the audit log; where there is no disk to keep it on, it lives in memory alone. */
export function auditFile({ files }: Pick<Kernel, 'files'>, tell: (error: unknown) => void, path = auditPath): (lines: string) => void {
  let told = false
  return (lines) => {
    try {
      const folder = path.slice(0, path.lastIndexOf('/'))
      if (!files.exists(folder)) return
      const size = files.lstatIfThere(path)?.size ?? 0
      if (size > largest) files.move(path, `${path}.1`)
      files.append(path, lines, { mode: 0o600 })
      told = false
    } catch (error) {
      if (!told) tell(error)
      told = true
    }
  }
}
