/** Client configurations with the credentials of the new authority. */

import { chmod, readFile, writeFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { Document } from 'yaml'
import { codeOf, failedWith } from '../../../wire/errno.ts'
import { Cluster } from '../cluster.ts'
import { runKubeconfig } from '../commands/kubernetes/kubeconfig.ts'
import { UsageError } from '../failure.ts'
import type { Io } from '../io.ts'
import { openTalosconfig, saveTalosconfig, type TalosconfigFile } from '../talosconfig/file.ts'
import type { AuthorityState } from './state.ts'

/** Keeps what is at a path as `<path>.bak`, readable by its owner only; true when there was something. */
async function backUp(path: string): Promise<boolean> {
  try {
    const previous = await readFile(path)
    if (previous.length === 0) return false
    await writeFile(`${path}.bak`, previous, { mode: 0o600 })
    await chmod(`${path}.bak`, 0o600)
    return true
  } catch (error) {
    if (failedWith(error, 'ENOENT')) return false
    throw new UsageError(`keep "${path}" as "${path}.bak": ${codeOf(error)}`)
  }
}

/**
 * Writes the client configuration of the new authority. In the file that is in use, the context is replaced and everything else
 * stays; any other file holds this context alone. What was there before is kept beside it.
 */
export async function writeTalosconfig(
  used: TalosconfigFile,
  output: string,
  context: string,
  endpoints: readonly string[],
  { next, nextClient }: AuthorityState,
): Promise<string> {
  const kept = await backUp(output)
  const value = { endpoints: [...endpoints], ca: next.crt, crt: nextClient.crt, key: nextClient.key }
  const inUse = resolve(output) === resolve(used.path)
  const file = inUse ? await openTalosconfig({ env: {} }, output) : emptyFile(output)
  if (inUse) for (const key of ['ca', 'crt', 'key'] as const) file.document.setIn(['contexts', context, key], value[key])
  else {
    file.document.setIn(['context'], context)
    file.document.setIn(['contexts', context], file.document.createNode(value))
  }
  await saveTalosconfig(file)
  return `"${output}"${kept ? `, the previous one is "${output}.bak"` : ''}`
}

function emptyFile(path: string): TalosconfigFile {
  return { path, config: { context: '', contexts: {} }, document: new Document({ context: '', contexts: {} }) }
}

/** Fetches a kubeconfig of the new authority, in place of the entries of the old one. */
export async function writeKubeconfig(io: Io, cluster: Cluster, controlPlane: string, path: string): Promise<void> {
  const target = await cluster.target()
  const one = new Cluster(io, { ...target, nodes: [controlPlane] })
  try {
    await backUp(path)
    await runKubeconfig(io, one, path, { force: true, merge: true })
  } finally {
    await one.close()
  }
}
