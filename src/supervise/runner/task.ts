import { messageOf } from '../../wire/error-message.ts'
import type { Exit, RunContext, Runner } from '../definition.ts'

/** Runs a function inside init. It ends by itself, or soon after its signal is aborted; it cannot be killed. */
export function task(name: string, run: (context: RunContext) => Promise<void>): Runner {
  return async (context) => {
    const stopping = new AbortController()
    const end = (): Exit => ({ ok: true, message: `Task "${name}" ended` })
    const failed = (error: unknown): Exit => ({
      ok: false,
      message: `Task "${name}" failed: ${messageOf(error)}`,
    })
    return {
      description: `Task "${name}" started`,
      exit: run({ ...context, signal: stopping.signal }).then(end, failed),
      kill: () => stopping.abort(),
    }
  }
}
