/** What a command in several steps has to remember until it is over: a file that only its owner may read. */
import { chmod, mkdir, rename, rm, writeFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import * as v from 'valibot'
import { codeOf } from '../../wire/errno.ts'
import { UsageError } from './failure.ts'
import { readTextIfThere } from './read-text.ts'

/** The folder of the client, in which such files have a folder for each command. */
export function clientFolder(env: Readonly<Record<string, string | undefined>>): string {
  return env.TALOS_HOME || join(env.HOME || homedir(), '.talos')
}

/** Reads a state; undefined when there is none. `what` completes the error "…" is not …. */
export async function readStateFile<S extends v.GenericSchema>(
  path: string,
  schema: S,
  what: string,
): Promise<v.InferOutput<S> | undefined> {
  const text = await readTextIfThere(path)
  if (text === undefined) return undefined
  try {
    return v.parse(schema, JSON.parse(text))
  } catch {
    throw new UsageError(`"${path}" is not ${what}`)
  }
}

/** Writes a state whole or not at all. `why` states what depends on it. */
export async function writeStateFile(path: string, state: unknown, why: string): Promise<void> {
  const temporary = `${path}.${process.pid}.new`
  try {
    await mkdir(dirname(path), { recursive: true, mode: 0o700 })
    await writeFile(temporary, `${JSON.stringify(state, undefined, 1)}\n`, { mode: 0o600, flag: 'wx' })
    await chmod(temporary, 0o600)
    await rename(temporary, path)
  } catch (error) {
    await rm(temporary, { force: true }).catch(() => {}) // there is no folder either
    throw new UsageError(`write "${path}": ${codeOf(error)}: ${why}`)
  }
}

/** Removes a state, if there is one. */
export async function removeStateFile(path: string): Promise<void> {
  try {
    await rm(path, { force: true })
  } catch (error) {
    throw new UsageError(`remove "${path}": ${codeOf(error)}`)
  }
}
