/** A place where backups are stored. */
import type { BackupName } from '../resources/backup-name.ts'

/** A backup in a target. */
export interface StoredBackup extends BackupName {
  readonly name: string
  /** Bytes. */
  readonly size: number
  readonly state: 'intact' | 'damaged' | 'unchecked'
}

/** What a target holds. */
export interface TargetContents {
  readonly backups: readonly StoredBackup[]
  /** Names of what is no backup of this cluster; the first hundred. */
  readonly foreign: readonly string[]
  /** Parts of the target that could not be listed, a line for each. */
  readonly problems?: readonly string[]
}

/** A backup that was taken and is ready to be stored. */
export interface TakenBackup extends BackupName {
  /** Where it is on this node, encrypted. */
  readonly path: string
  readonly name: string
  /** Bytes. */
  readonly size: number
  /** SHA-256 of the file, in hexadecimal. */
  readonly sha256: string
  /** Keys in it. */
  readonly keys: number
}

/** A place where backups are stored. All calls reject with one line, and end with the signal. */
export interface BackupTarget {
  readonly name: string
  /** When the credentials for the target expire; undefined where they do not. */
  readonly expires?: Date
  /** The target deletes old backups itself, and none on request. */
  readonly prunesItself?: boolean
  /** What is there. */
  contents(signal: AbortSignal): Promise<TargetContents>
  /** Stores a backup under its name whole, or not at all, and verifies it. */
  store(backup: TakenBackup, signal: AbortSignal): Promise<void>
  /** The bytes of a backup. */
  read(name: string, signal: AbortSignal): AsyncIterable<Uint8Array>
  remove(name: string, signal: AbortSignal): Promise<void>
}

/** How many names of others are kept. */
export const mostForeign = 100

/** A target that failed. */
export interface TargetFailure {
  readonly target: string
  readonly message: string
}

/** What the targets of a node hold. */
export interface BackupListing {
  readonly backups: readonly (StoredBackup & { readonly target: string })[]
  readonly failures: readonly TargetFailure[]
  readonly foreign: readonly string[]
}

/** A backup that was taken, and where it is. */
export interface BackupResult {
  readonly backup: TakenBackup
  readonly stored: readonly string[]
  readonly failures: readonly TargetFailure[]
}
