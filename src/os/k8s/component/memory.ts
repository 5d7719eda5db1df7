/** The settings each component last ran with, kept on STATE so that they survive a restart with a rejected configuration. */
import * as v from 'valibot'
import type { Logger } from '../../../cosi/log.ts'
import type { Kernel } from '../../kernel.ts'
import { type ComponentName, componentNames } from './settings.ts'
import type { TrialState } from './trial.ts'

/** Where they are kept. The file holds parts of the machine configuration, so only root may read it. */
export const memoryPath = '/system/state/component-settings.json'

const Settings = v.object({ digest: v.string(), section: v.unknown() })
const State = v.object({
  good: v.optional(Settings),
  rejected: v.optional(v.object({ ...Settings.entries, error: v.string(), since: v.string() })),
})
const File = v.object({ components: v.record(v.picklist(componentNames), State) })

type Files = Pick<Kernel['files'], 'readTextIfThere' | 'writeAtomic'>

/** The kept state of each component. A damaged file is logged and ignored. */
export function recall(files: Files, log: Logger): Map<ComponentName, TrialState> {
  const text = files.readTextIfThere(memoryPath)
  if (text === undefined) return new Map()
  try {
    return new Map(Object.entries(v.parse(File, JSON.parse(text)).components) as [ComponentName, TrialState][])
  } catch (error) {
    log.error('component settings file damaged, ignoring it', { path: memoryPath, error })
    return new Map()
  }
}

/** Stores the state of each component. */
export const remember = (files: Files, states: ReadonlyMap<ComponentName, TrialState>): Promise<void> =>
  files.writeAtomic(memoryPath, JSON.stringify({ components: Object.fromEntries(states) }), { mode: 0o600 })
