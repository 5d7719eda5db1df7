/** The client configuration as a file that is changed: what is not touched stays as it was written, comments too. */

import { chmod, mkdir, rename, rm, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { Document, isMap, parseDocument } from 'yaml'
import { codeOf } from '../../../wire/errno.ts'
import { UsageError } from '../failure.ts'
import type { Io } from '../io.ts'
import { readTextIfThere } from '../read-text.ts'
import { podTalosconfig, talosconfigPaths } from './path.ts'
import { type Context, parseTalosconfig, type Talosconfig } from './talosconfig.ts'

/** An open client configuration; edits go into `document`, and `config` is its content when it was opened. */
export interface TalosconfigFile {
  readonly path: string
  readonly config: Talosconfig
  readonly document: Document
}

/** Opens the file the flags and the environment name; one that is not there yet is empty. */
export async function openTalosconfig(io: Pick<Io, 'env'>, flag?: string): Promise<TalosconfigFile> {
  const [path = ''] = talosconfigPaths(flag, io.env).filter((candidate) => candidate !== podTalosconfig)
  const text = (await readTextIfThere(path)) ?? ''
  const config = await parseTalosconfig(text, `"${path}"`)
  const document = parseDocument(text)
  const empty = new Document({ context: '', contexts: {} })
  return { path, config, document: isMap(document.contents) ? document : empty }
}

/** Writes the file whole or not at all; nobody but its owner may read it. */
export async function saveTalosconfig({ path, document }: TalosconfigFile): Promise<void> {
  const temporary = `${path}.${process.pid}.new`
  try {
    await mkdir(dirname(path), { recursive: true, mode: 0o700 })
    await writeFile(temporary, document.toString({ lineWidth: 0, indent: 4 }), { mode: 0o600, flag: 'wx' })
    await chmod(temporary, 0o600)
    await rename(temporary, path)
  } catch (error) {
    await rm(temporary, { force: true })
    throw new UsageError(`write "${path}": ${codeOf(error)}`)
  }
}

/** The context the flag names, or the chosen one. */
export function contextOf({ path, config }: TalosconfigFile, flag?: string): { name: string; context: Context } {
  const name = flag ?? config.context
  if (!name) throw new UsageError(`no context is chosen in "${path}": run "talosctl config context <name>"`)
  return { name, context: requireContext({ path, config }, name) }
}

/** A context by its name; refused with the names that are there. */
export function requireContext({ path, config }: Pick<TalosconfigFile, 'path' | 'config'>, name: string): Context {
  const context = Object.hasOwn(config.contexts, name) ? config.contexts[name] : undefined
  if (context) return context
  const known = Object.keys(config.contexts)
  throw new UsageError(`context "${name}" is not in "${path}"${known.length ? `: there are ${known.join(', ')}` : ', which has none'}`)
}

/** Puts contexts in beside those that are there; a name that is taken gets a number, or is given up. Gives old names and new ones. */
export function addContexts(
  { config, document }: TalosconfigFile,
  contexts: Record<string, Context>,
  overwrite = false,
): Map<string, string> {
  const taken = new Set(overwrite ? [] : Object.keys(config.contexts))
  const names = new Map<string, string>()
  for (const [name, context] of Object.entries(contexts)) {
    let free = name
    for (let number = 1; taken.has(free); number++) free = `${name}-${number}`
    taken.add(free)
    names.set(name, free)
    document.setIn(['contexts', free], document.createNode(JSON.parse(JSON.stringify(context))))
  }
  return names
}
