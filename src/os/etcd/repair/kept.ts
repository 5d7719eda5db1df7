/** The data that a member could not use, beside its data folder: one copy, with a report. */
import * as v from 'valibot'
import type { Kernel } from '../../kernel.ts'
import { dataFolder, etcdUid, keptFolder } from '../arguments.ts'

/** What keeping data uses of the kernel. */
export type KeptFiles = Pick<Kernel['files'], 'exists' | 'mkdirAll' | 'move' | 'remove' | 'writeAtomic' | 'readTextIfThere'>

const reportFile = `${keptFolder}/report.json`

const report = v.object({
  reason: v.string(),
  /** When the data was put aside. */
  time: v.string(),
  /** When the member voted again; absent until then. */
  voting: v.optional(v.string()),
})

/** Why and when the data was put aside. */
export type KeptReport = v.InferOutput<typeof report>

/** Moves the data aside; a copy from before is deleted. */
export async function keepData(files: KeptFiles, of: KeptReport): Promise<void> {
  await files.remove(keptFolder)
  files.mkdirAll(keptFolder, { mode: 0o700, uid: etcdUid, gid: etcdUid })
  // The report is first: data without one is not recognized after an interruption, and a report without data is overwritten.
  await writeKept(files, of)
  files.move(`${dataFolder}/member`, `${keptFolder}/member`)
}

/** Replaces the report. */
export const writeKept = (files: KeptFiles, of: KeptReport): Promise<void> =>
  files.writeAtomic(reportFile, JSON.stringify(of), { mode: 0o600 })

/** The report of the data that is kept; undefined when none is. */
export function readKept(files: Pick<KeptFiles, 'exists' | 'readTextIfThere'>): KeptReport | undefined {
  const text = files.exists(`${keptFolder}/member`) ? files.readTextIfThere(reportFile) : undefined
  if (text === undefined) return undefined
  try {
    return v.parse(report, JSON.parse(text))
  } catch {
    // A report that was damaged with the disk: the data is still kept for its time.
    return { reason: 'its report cannot be read', time: new Date(0).toISOString() }
  }
}
