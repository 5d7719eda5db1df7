import type { Kernel } from '../kernel.ts'

/** Where the configuration is kept over restarts, on STATE. */
export const statePath = '/system/state/config.yaml'

/** The one kept before it. */
export const previousStatePath = `${statePath}.previous`

/** Writes a configuration, and the previous one beside it; returns false when it was kept already. */
export async function keepConfig(files: Pick<Kernel['files'], 'readTextIfThere' | 'writeAtomic'>, text: string): Promise<boolean> {
  const kept = files.readTextIfThere(statePath)
  if (kept === text) return false
  if (kept !== undefined) await files.writeAtomic(previousStatePath, kept, { mode: 0o600 })
  await files.writeAtomic(statePath, text, { mode: 0o600 })
  return true
}
