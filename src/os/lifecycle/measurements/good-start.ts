/** The measurements of the last good start, kept on STATE: later starts are compared with them. */
import * as v from 'valibot'
import type { Logger } from '../../../cosi/log.ts'
import type { Kernel } from '../../kernel.ts'

/** Where they are kept. */
export const goodStartPath = '/system/state/good-start.json'

/** More than the events of any firmware. */
const limit = 8 << 20

const Event = v.object({ type: v.string(), digest: v.string(), subject: v.string(), detail: v.optional(v.string()) })
const File = v.object({
  time: v.string(),
  release: v.string(),
  bank: v.string(),
  pcrs: v.record(v.string(), v.object({ value: v.string(), explained: v.boolean(), events: v.array(Event) })),
})

/** A start that was found good. */
export type GoodStart = v.InferOutput<typeof File>

type Files = Pick<Kernel['files'], 'readTextIfThere' | 'writeAtomic'>

/** The last good start; undefined before the first. A damaged file is logged and ignored: the next good start replaces it. */
export function lastGoodStart(files: Files, log: Logger): GoodStart | undefined {
  try {
    const text = files.readTextIfThere(goodStartPath, { limit })
    return text === undefined ? undefined : v.parse(File, JSON.parse(text))
  } catch (error) {
    log.error('record of the last good start damaged, ignoring it', { path: goodStartPath, error })
    return undefined
  }
}

/** Replaces the last good start. */
export const keepGoodStart = (files: Files, start: GoodStart): Promise<void> =>
  files.writeAtomic(goodStartPath, JSON.stringify(v.parse(File, start)), { mode: 0o600 })
