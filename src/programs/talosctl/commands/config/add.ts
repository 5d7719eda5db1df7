import { UsageError } from '../../failure.ts'
import type { Io } from '../../io.ts'
import { readText } from '../../read-text.ts'
import { openTalosconfig, saveTalosconfig } from '../../talosconfig/file.ts'
import type { ConfigFlags } from './config.ts'

/** Files that hold a context's credentials, as PEM. */
export interface CredentialFiles {
  ca?: string
  crt?: string
  key?: string
}

/** Adds a context. */
export async function addContext(io: Io, flags: ConfigFlags, name: string, files: CredentialFiles): Promise<void> {
  const file = await openTalosconfig(io, flags.talosconfig)
  if (Object.hasOwn(file.config.contexts, name)) throw new UsageError(`context "${name}" is in "${file.path}" already`)
  if (Boolean(files.crt) !== Boolean(files.key)) throw new UsageError('a certificate and its key go together: give both --crt and --key')
  const context: Record<string, unknown> = { endpoints: [] }
  for (const key of ['ca', 'crt', 'key'] as const) {
    const path = files[key]
    if (path) context[key] = Buffer.from(await readPem(path)).toString('base64')
  }
  file.document.setIn(['contexts', name], file.document.createNode(context))
  if (!file.config.context) file.document.setIn(['context'], name)
  await saveTalosconfig(file)
}

async function readPem(path: string): Promise<string> {
  const text = await readText(path)
  if (!text.includes('-----BEGIN ')) throw new UsageError(`"${path}" does not hold PEM`)
  return text
}
