import { toRpcError } from '../../../rpc/status.ts'

/** Runs work that reports progress, and yields its messages until it has ended. Throws its error as a status. */
export async function* progressOf(work: (report: (message: string) => void) => Promise<unknown>): AsyncGenerator<string, void> {
  const messages: string[] = []
  let wake = () => {}
  let ended = false
  const running = work((message) => {
    messages.push(message)
    wake()
  }).finally(() => {
    ended = true
    wake()
  })
  running.catch(() => {}) // thrown below
  while (!ended || messages.length > 0) {
    const message = messages.shift()
    if (message !== undefined) yield message
    else
      await new Promise<void>((resolve) => {
        wake = resolve
      })
  }
  await running.catch((error) => {
    throw toRpcError(error)
  })
}
