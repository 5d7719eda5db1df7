/**
 * A replacement that has begun: a file in the folder of the client, written before the member is removed and deleted when another
 * one has taken its place, so that the same command continues after an interruption.
 */
import { mkdir, readdir, rename, rm, writeFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join } from 'node:path'
import * as v from 'valibot'
import { failedWith } from '../../../../wire/errno.ts'
import { UsageError } from '../../failure.ts'
import { readTextIfThere } from '../../read-text.ts'

const schema = v.object({
  /** The member that is replaced: 16 hexadecimal digits, name and address. */
  id: v.string(),
  name: v.string(),
  address: v.string(),
  /** Ids of the members that were there besides it. */
  others: v.array(v.string()),
  /** Its node in Kubernetes: a node of the same name that comes later is another one. */
  node: v.optional(v.object({ name: v.string(), uid: v.string() })),
})

/** A replacement that has begun. */
export type Replacement = v.InferOutput<typeof schema>

/** The folder with the replacements of all clusters. */
export const replacementFolder = (env: Readonly<Record<string, string | undefined>>): string =>
  join(env.TALOS_HOME || join(env.HOME || homedir(), '.talos'), 'replacements')

const pathOf = (folder: string, { id }: Pick<Replacement, 'id'>): string => join(folder, `${id}.json`)

/** Writes the file in one step. */
export async function saveReplacement(folder: string, replacement: Replacement): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const path = pathOf(folder, replacement)
  await writeFile(`${path}.part`, JSON.stringify(replacement), { mode: 0o600 })
  await rename(`${path}.part`, path)
}

/** Deletes the file. */
export const endReplacement = (folder: string, replacement: Replacement): Promise<void> => rm(pathOf(folder, replacement), { force: true })

/** The replacement of this member (id, name or address) in a cluster that has one of these members; undefined when there is none. */
export async function findReplacement(folder: string, which: string, members: readonly string[]): Promise<Replacement | undefined> {
  const id = which.replace(/^0x/i, '').toLowerCase().padStart(16, '0')
  let names: string[] = []
  try {
    names = (await readdir(folder)).filter((name) => name.endsWith('.json'))
  } catch (error) {
    if (!failedWith(error, 'ENOENT')) throw error
  }
  for (const name of names) {
    const found = await read(join(folder, name))
    const named = found.id === id || found.name === which || found.address === which
    if (named && found.others.some((other) => members.includes(other))) return found
  }
  return undefined
}

async function read(path: string): Promise<Replacement> {
  try {
    return v.parse(schema, JSON.parse((await readTextIfThere(path)) ?? ''))
  } catch (error) {
    throw new UsageError(`"${path}" is not the file of a replacement: delete it`, { cause: error })
  }
}
