import type { Machine } from '../area.ts'

const path = '/usr/sbin:/usr/bin:/sbin:/bin'
/** Time limit of a program, in milliseconds; creating a file system on a slow disk takes minutes. */
const limit = 15 * 60_000
const mostOutput = 64 << 10

/** A program of the system image failed. The message contains the end of its output. */
export class ProgramFailed extends Error {
  override name = 'ProgramFailed'

  constructor(
    message: string,
    /** The exit code; null if it was killed by a signal. */
    readonly code: number | null,
  ) {
    super(message)
  }
}

/** Runs a program of the system image and returns its output. */
export async function runProgram({ spawn }: Pick<Machine, 'spawn'>, argv: readonly string[]): Promise<string> {
  const child = spawn({ argv, env: { PATH: path } })
  const timer = setTimeout(() => child.kill('SIGKILL'), limit)
  try {
    const texts = await Promise.all(child.output.map(tail))
    const { code, signal } = await child.exited
    if (code === 0) return texts.join('')
    const output = texts.join('\n').trim().split('\n').slice(-3).join('; ')
    const how = signal ? `killed by ${signal}` : `exit code ${code}`
    throw new ProgramFailed(`${argv.join(' ')}: ${how}${output && `: ${output}`}`, code)
  } finally {
    clearTimeout(timer)
  }
}

/** Reads a stream to its end and returns the last bytes. */
async function tail(stream: ReadableStream<Uint8Array>): Promise<string> {
  let kept = Buffer.alloc(0)
  for await (const chunk of stream) kept = Buffer.from(Buffer.concat([kept, chunk]).subarray(-mostOutput))
  return kept.toString()
}
