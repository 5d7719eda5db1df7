/** Runs a program of the system image to its end: with a deadline, bounded output and a typed error. */
import type { ReadableStreamDefaultReader } from 'node:stream/web'
import { timerDelay } from '../timing/timer.ts'
import { within } from '../timing/within.ts'
import { lastWords } from './last-words.ts'
import type { ExitStatus, Spawn } from './spawn.ts'

const path = '/usr/sbin:/usr/bin:/sbin:/bin'
/** Bytes that are kept of each output stream by default, its last ones. */
const usualOutput = 64 << 10
/** Milliseconds after SIGKILL in which a program must have ended; one that hangs in the kernel does not. */
const killTime = 10_000
/** Milliseconds for the output after the exit: a process that the program left behind may hold the pipe open. */
const outputTime = 1_000

/** How a program is run. */
export interface ProgramOptions {
  /** Milliseconds after which it is killed. */
  readonly timeout: number
  /** Kills it; the call rejects with the reason of the signal. */
  readonly signal?: AbortSignal | undefined
  /** Exit codes other than 0 that are a success. */
  readonly accept?: readonly number[]
  /** Bytes that are kept of each output stream, its last ones. Default: 64 KiB. */
  readonly mostOutput?: number
  /** What it is run for, as the error names it. Default: the command line. */
  readonly purpose?: string
}

/** A program failed. The message has the lines of its output that state why. */
export class ProgramFailed extends Error {
  override name = 'ProgramFailed'

  constructor(
    purpose: string,
    /** The exit code, or the signal that killed it; neither where it could not be killed. */
    readonly status: ExitStatus,
    readonly timedOut: boolean,
    /** The end of its output. */
    readonly output: string,
  ) {
    const { code, signal } = status
    const how = timedOut ? 'no end in time' : signal ? `killed by ${signal}` : `exit code ${code}`
    super([purpose, how, lastWords(output).replaceAll('\n', '; ')].filter(Boolean).join(': '))
  }
}

/** Runs a program of the system image and resolves to its output. Rejects with ProgramFailed. */
export async function runProgram(
  { spawn }: { readonly spawn: Spawn },
  argv: readonly string[],
  { timeout, signal, accept = [], mostOutput = usualOutput, purpose = argv.join(' ') }: ProgramOptions,
): Promise<string> {
  signal?.throwIfAborted()
  const child = spawn({ argv, env: { PATH: path }, cwd: '/' })
  const outputs = child.output.map((stream) => new OutputTail(stream, mostOutput))
  let timedOut = false
  const kill = () => child.kill('SIGKILL')
  const timer = setTimeout(() => {
    timedOut = true
    kill()
  }, timerDelay(timeout))
  signal?.addEventListener('abort', kill)
  try {
    const unkillable = () => new ProgramFailed(purpose, { code: null, signal: null }, true, outputs.map(({ text }) => text).join('\n'))
    const status = await within(child.exited, timeout + killTime, unkillable)
    signal?.throwIfAborted()
    await within(Promise.all(outputs.map(({ done }) => done)), outputTime, () => new Error('the output is still open')).catch(() => {})
    const output = outputs.map(({ text }) => text).join('\n')
    if (status.code !== null && [0, ...accept].includes(status.code)) return output
    throw new ProgramFailed(purpose, status, timedOut, output)
  } finally {
    clearTimeout(timer)
    signal?.removeEventListener('abort', kill)
    for (const output of outputs) output.close()
  }
}

/** The last bytes of a stream. */
class OutputTail {
  readonly done: Promise<void>
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>
  readonly #most: number
  #kept: Buffer = Buffer.alloc(0)

  constructor(stream: ReadableStream<Uint8Array>, most: number) {
    this.#most = most
    this.#reader = stream.getReader()
    this.done = this.#read().catch(() => {})
  }

  get text(): string {
    return this.#kept.toString()
  }

  /** Stops reading. */
  close(): void {
    this.#reader.cancel().catch(() => {})
  }

  async #read(): Promise<void> {
    for (let next = await this.#reader.read(); !next.done; next = await this.#reader.read())
      this.#kept = Buffer.from(Buffer.concat([this.#kept, next.value]).subarray(-this.#most))
  }
}
