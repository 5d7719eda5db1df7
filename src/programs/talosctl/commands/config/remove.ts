import { matchesWildcard } from '../../../../wire/wildcard.ts'
import { UsageError } from '../../failure.ts'
import type { Io } from '../../io.ts'
import { openTalosconfig, saveTalosconfig } from '../../talosconfig/file.ts'
import type { ConfigFlags } from './config.ts'

/** How careful to be. */
export interface RemoveOptions {
  noconfirm?: boolean
  dryRun?: boolean
}

/** Removes the contexts a pattern stands for, except the current one. */
export async function removeContexts(io: Io, flags: ConfigFlags, pattern: string, { noconfirm, dryRun }: RemoveOptions): Promise<void> {
  const file = await openTalosconfig(io, flags.talosconfig)
  const exact = pattern.replaceAll('?', '\0') // only stars are special here
  const matching = Object.keys(file.config.contexts).filter((name) => matchesWildcard(exact, name.replaceAll('?', '\0')))
  if (matching.length === 0)
    throw new UsageError(`no context matches "${pattern}": there are ${Object.keys(file.config.contexts).join(', ') || 'none'}`)
  const going = matching.filter((name) => name !== file.config.context)
  if (going.length < matching.length) {
    io.stderr.write(`skipping the current context "${file.config.context}": choose another one before removing it\n`)
  }
  if (going.length === 0) return
  if (dryRun) {
    for (const name of going) io.stderr.write(`would remove context "${name}"\n`)
    return
  }
  if (!noconfirm) {
    if (!io.interactive) throw new UsageError('the confirmation needs a terminal: add --noconfirm to remove without confirmation')
    const answer = await io.ask(`remove ${going.map((name) => `"${name}"`).join(', ')} from "${file.path}"? (y/N): `)
    if (!/^y(es)?$/i.test(answer)) throw new UsageError('nothing was removed')
  }
  for (const name of going) {
    file.document.deleteIn(['contexts', name])
    io.stderr.write(`removed context "${name}"\n`)
  }
  await saveTalosconfig(file)
}
