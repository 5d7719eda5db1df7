/**
 * What a restore has to remember so that it continues after an interruption: how far it is, in a file beside the snapshot it
 * restores. Both are removed when it is done.
 */
import { mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import * as v from 'valibot'
import { codeOf } from '../../../wire/errno.ts'
import { UsageError } from '../failure.ts'
import { clientFolder, readStateFile, removeStateFile, writeStateFile } from '../state-file.ts'

const schema = v.object({
  /** As it was given with `--from`. */
  from: v.string(),
  /** Whether the snapshot has no hash of its own. */
  hashless: v.optional(v.boolean(), false),
  /** Control planes; the first one is bootstrapped. */
  nodes: v.pipe(v.array(v.string()), v.minLength(1)),
  /** What is done next. */
  step: v.picklist(['discard', 'restart', 'bootstrap', 'wait']),
  /** Of each node, when the boot began that a restart ends. */
  boots: v.record(v.string(), v.string()),
})

/** How far a restore is. */
export type RestoreState = v.InferOutput<typeof schema>

/** The files of one cluster's restore. */
export interface RestoreFiles {
  readonly folder: string
  readonly state: string
  readonly snapshot: string
}

/** Where the restore of a cluster keeps its files. */
export function restoreFiles(env: Readonly<Record<string, string | undefined>>, cluster: string): RestoreFiles {
  const folder = join(clientFolder(env), 'restores')
  const path = join(folder, encodeURIComponent(cluster))
  return { folder, state: `${path}.json`, snapshot: `${path}.snapshot` }
}

/** The state of a restore that was interrupted; undefined when there is none. */
export const readRestore = ({ state }: RestoreFiles): Promise<RestoreState | undefined> =>
  readStateFile(state, schema, 'the state of a restore: move it away')

/** Makes the folder, which only its owner may read: snapshots hold every secret of a cluster. */
export async function prepareFolder({ folder }: RestoreFiles): Promise<void> {
  try {
    await mkdir(folder, { recursive: true, mode: 0o700 })
  } catch (error) {
    throw new UsageError(`create "${folder}": ${codeOf(error)}`)
  }
}

/** Writes the state whole or not at all. */
export const writeRestore = ({ state: path }: RestoreFiles, state: RestoreState): Promise<void> =>
  writeStateFile(path, state, 'a restore keeps there how far it is, and changes nothing without it')

/** Removes the files of a restore that is done. */
export async function removeRestore({ state, snapshot }: RestoreFiles): Promise<void> {
  await removeStateFile(state)
  await rm(snapshot, { force: true })
}
