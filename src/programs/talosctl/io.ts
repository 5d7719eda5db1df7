/**
 * What a command may touch of the outside: two outputs, the environment, the clock and the user.
 * Results go to `stdout`, everything else to `stderr`. Tests hand in an Io made of strings.
 */

import { Writable } from 'node:stream'
import { pause } from '../../timing/pause.ts'
import { failedWith } from '../../wire/errno.ts'

/** One of the two outputs. */
export interface Output {
  write(chunk: string | Uint8Array): void
  /** Resolves when everything written so far has left the process: the back pressure of byte streams. */
  drained(): Promise<void>
  readonly isTTY: boolean
  /** Whether escape codes may be written. */
  readonly colors: boolean
  readonly columns: number
}

/** The outside, as commands see it. */
export interface Io {
  readonly stdout: Output
  readonly stderr: Output
  readonly env: Readonly<Record<string, string | undefined>>
  /** Aborted by Ctrl-C. */
  readonly signal: AbortSignal
  /** Whether a person can answer questions. */
  readonly interactive: boolean
  now(): Date
  /** Waits so many milliseconds, or until Ctrl-C; never rejects. */
  pause(milliseconds: number): Promise<void>
  /** Prompts on stderr and resolves to the trimmed answer. */
  ask(question: string): Promise<string>
  /** As `ask`, on a terminal that does not show the answer. */
  askSecret(question: string): Promise<string>
  /** Everything on standard input. */
  readStdin(): Promise<Uint8Array>
}

/** Prints status of a successful command to stderr for a person; scripts, whose stderr is no terminal, see nothing. */
export function remark(io: Pick<Io, 'stderr'>, text: string): void {
  if (io.stderr.isTTY) io.stderr.write(text)
}

const csi = '\u001b['

/** Whether an output may be coloured: a terminal, and NO_COLOR is not set (https://no-color.org). */
function mayColor(isTTY: boolean, env: Io['env']): boolean {
  return isTTY && !env.NO_COLOR && env.TERM !== 'dumb'
}

/** Text in one of the eight colours of a terminal (0 to 7), or as it is where colours are off. */
export function paint(output: Output, color: number, text: string): string {
  return output.colors ? `${csi}3${color % 8}m${text}${csi}0m` : text
}

function output(stream: NodeJS.WriteStream, env: Io['env']): Output {
  let pending = Promise.resolve()
  stream.on('error', (error) => process.exit(failedWith(error, 'EPIPE') ? 141 : 74))
  return {
    write(chunk) {
      if (stream.write(chunk)) return
      pending = new Promise((resolve) => stream.once('drain', () => resolve()))
    },
    drained: () => pending,
    isTTY: stream.isTTY === true,
    colors: mayColor(stream.isTTY === true, env),
    columns: stream.columns ?? 80,
  }
}

/** The Io of this process; the first Ctrl-C aborts `signal`, the second ends the process. */
export function processIo(): Io {
  const env = process.env
  const abort = new AbortController()
  const stdout = output(process.stdout, env)
  const stderr = output(process.stderr, env)
  let signal: AbortSignal | undefined
  const interrupted = () => {
    if (abort.signal.aborted) process.exit(130)
    stderr.write('Signal received, aborting, press Ctrl+C once again to abort immediately...\n')
    abort.abort(new Error('interrupted'))
  }
  return {
    stdout,
    stderr,
    env,
    get signal() {
      if (!signal) {
        signal = abort.signal
        process.on('SIGINT', interrupted).on('SIGTERM', interrupted)
      }
      return signal
    },
    interactive: process.stdin.isTTY === true,
    now: () => new Date(),
    pause(milliseconds) {
      return pause(milliseconds, this.signal)
    },
    async ask(question) {
      const { createInterface } = await import('node:readline/promises')
      const reader = createInterface({ input: process.stdin, output: process.stderr })
      try {
        return (await reader.question(question)).trim()
      } finally {
        reader.close()
      }
    },
    async askSecret(question) {
      const { createInterface } = await import('node:readline/promises')
      // readline turns the echo of the terminal off, and shows what is typed on its output.
      const silent = new Writable({ write: (_chunk, _encoding, done) => done() })
      const reader = createInterface({ input: process.stdin, output: silent, terminal: true })
      reader.on('SIGINT', () => process.kill(process.pid, 'SIGINT'))
      process.stderr.write(question)
      try {
        return (await reader.question('', { signal: this.signal })).trim()
      } finally {
        reader.close()
        process.stderr.write('\n')
      }
    },
    readStdin: async () => new Uint8Array(await Bun.stdin.arrayBuffer()),
  }
}
