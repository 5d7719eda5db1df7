import type { Exit, Life, Runner } from '../definition.ts'

/** Runs a function inside init. It ends by itself, or soon after its signal is aborted; there is nothing harsher than asking. */
export function task(name: string, run: (life: Life) => Promise<void>): Runner {
  return async (life) => {
    const asked = new AbortController()
    const end = (): Exit => ({ ok: true, message: `Task "${name}" ended` })
    const failed = (error: unknown): Exit => ({
      ok: false,
      message: `Task "${name}" failed: ${error instanceof Error ? error.message : String(error)}`,
    })
    return {
      description: `Task "${name}" started`,
      exit: run({ ...life, signal: asked.signal }).then(end, failed),
      kill: () => asked.abort(),
    }
  }
}
