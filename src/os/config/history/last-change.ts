/** Finds the applied configuration that last changed a setting. */
import { ConfigError } from '../../../document/config-error.ts'
import { ConfigContainer } from '../container.ts'
import { V1Alpha1 } from '../documents/v1alpha1.ts'
import { changesBetween, isBelow } from './changes.ts'
import type { ConfigHistory, HistoryEntry } from './history.ts'

/** An entry of the history, as `config-history` lists it. */
export type LastChange = Pick<HistoryEntry, 'id' | 'time' | 'by' | 'mode'> & {
  /** The entry before it, which has the previous setting: `talosctl config-history restore ID` brings it back. */
  readonly previous: number
}

/**
 * The entry that last changed the configuration in force at or below a path: of the v1alpha1 document
 * (`cluster.apiServer.extraArgs`), or of all documents of a kind (`LinkConfig`). Undefined when the setting is older than the
 * history. Entries that were reverted are left out.
 */
export function lastChangeOf(path: string, history: Pick<ConfigHistory, 'list'>, inForce: string | undefined): LastChange | undefined {
  const entries = history.list()
  const last = entries.findLastIndex(({ text }) => text === inForce)
  const taken = entries.slice(0, last + 1).filter(({ outcome }, index) => outcome !== 'reverted' || index === last)
  for (let at = taken.length - 1; at > 0; at--) {
    const [before, entry] = taken.slice(at - 1, at + 1)
    if (!entry || !before || entry.text === before.text || !changes(before.text, entry.text, path)) continue
    return { id: entry.id, time: entry.time, by: entry.by, mode: entry.mode, previous: before.id }
  }
  return undefined
}

function changes(before: string, after: string, path: string): boolean {
  try {
    const found = changesBetween(ConfigContainer.parse(before), ConfigContainer.parse(after))
    return found.some((change) => (change.kind === V1Alpha1.kind ? isBelow(change, [path]) : change.kind === path))
  } catch (error) {
    // A text of another release that cannot be parsed here is ignored.
    if (error instanceof ConfigError) return false
    throw error
  }
}
