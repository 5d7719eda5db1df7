/** Which backups of a target are deleted. */
import type { StoredBackup } from './target.ts'

/** How long backups are kept. */
export interface Retention {
  readonly keepLast: number | undefined
  /** Milliseconds. */
  readonly maxAge: number | undefined
}

/** Without any retention in the configuration. */
export const defaultRetention: Retention = { keepLast: 30, maxAge: undefined }

/** The backups to delete, oldest first. Damaged ones are never among them, and neither is the newest of the others. */
export function outdated(backups: readonly StoredBackup[], { keepLast, maxAge }: Retention, now: Date): StoredBackup[] {
  const whole = newestFirst(backups.filter(({ state }) => state !== 'damaged'))
  return whole
    .filter(({ taken }, index) => {
      const tooMany = keepLast !== undefined && index >= keepLast
      const tooOld = maxAge !== undefined && now.getTime() - taken.getTime() > maxAge
      return index > 0 && (tooMany || tooOld)
    })
    .reverse()
}

/** Backups, the newest first; of one second the one with the higher revision. */
export const newestFirst = <T extends Pick<StoredBackup, 'taken' | 'revision' | 'name'>>(backups: readonly T[]): T[] =>
  [...backups].sort((a, b) => b.taken.getTime() - a.taken.getTime() || b.revision - a.revision || (a.name < b.name ? -1 : 1))
