/** What a person or a pipe gives to a command that runs something elsewhere: bytes, and the size of the terminal. */

/** Something that was typed or piped in, or a new size. */
export type KeyboardEvent = { readonly bytes: Uint8Array } | { readonly columns: number; readonly rows: number }

/** Standard input while a command has it. */
export interface Keyboard {
  /** Takes the terminal, where there is one: from then on keys come one by one, Ctrl-C too. */
  terminal?(): true | undefined
  /** What comes, until the input ends or the signal is aborted. */
  events(signal: AbortSignal): AsyncIterable<KeyboardEvent>
  /** Gives the terminal back. */
  close(): void
}

/** Standard input of this process; a terminal only when the output is one too. */
export function processKeyboard(): Keyboard {
  const { stdin, stdout } = process
  const queue: KeyboardEvent[] = []
  let taken = false
  let wake = () => {}
  const push = (event: KeyboardEvent) => {
    queue.push(event)
    wake()
  }
  const resized = () => push({ columns: stdout.columns, rows: stdout.rows })
  return {
    terminal() {
      if (!stdin.isTTY || !stdout.isTTY) return undefined
      stdin.setRawMode(true)
      taken = true
      resized()
      stdout.on('resize', resized)
      return true
    },
    async *events(signal) {
      let ended = false
      const end = () => {
        ended = true
        wake()
      }
      // A pipe is read no faster than what it gives is taken.
      const data = (bytes: Uint8Array) => {
        if (!taken) stdin.pause()
        push({ bytes })
      }
      signal.addEventListener('abort', end)
      stdin.on('data', data).on('end', end).on('error', end).resume()
      try {
        while (!signal.aborted) {
          const event = queue.shift()
          if (event) {
            yield event
            if (queue.length === 0 && !ended) stdin.resume()
          } else if (ended) return
          else
            await new Promise<void>((resolve) => {
              wake = resolve
            })
        }
      } finally {
        stdin.off('data', data).off('end', end).off('error', end).pause()
        signal.removeEventListener('abort', end)
      }
    },
    close() {
      // A reader may be waiting to pass on the last input; the program must not wait for more.
      stdin.removeAllListeners('data').pause()
      stdin.unref?.()
      if (!taken) return
      stdin.setRawMode(false)
      stdout.off('resize', resized)
    },
  }
}
