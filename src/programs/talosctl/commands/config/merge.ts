import { UsageError } from '../../failure.ts'
import type { Io } from '../../io.ts'
import { addContexts, openTalosconfig, saveTalosconfig } from '../../talosconfig/file.ts'
import { readTalosconfig } from '../../talosconfig/talosconfig.ts'
import type { ConfigFlags } from './config.ts'

/** Takes in the contexts of other files, beside those of the same name or in their place; the current context of the last one becomes the current one here. */
export async function mergeConfig(io: Io, flags: ConfigFlags, paths: string[], { overwrite = false } = {}): Promise<void> {
  for (const path of paths) {
    const from = await readTalosconfig([path])
    if (!from) throw new UsageError(`there is no file "${path}"`)
    const file = await openTalosconfig(io, flags.talosconfig)
    const names = addContexts(file, from.config.contexts, overwrite)
    for (const [old, name] of names) if (old !== name) io.stderr.write(`renamed talosconfig context "${old}" -> "${name}"\n`)
    const replaced = overwrite ? Object.keys(from.config.contexts).filter((name) => Object.hasOwn(file.config.contexts, name)) : []
    for (const name of replaced) io.stderr.write(`overwrote talosconfig context "${name}"\n`)
    const current = names.get(from.config.context)
    if (current) file.document.setIn(['context'], current)
    await saveTalosconfig(file)
  }
}
