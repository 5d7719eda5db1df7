import type { Machine } from '../area.ts'

const path = '/usr/sbin:/usr/bin:/sbin:/bin'
/** A program that is silent for so long hangs; making a file system on a slow disk takes minutes. */
const limit = 15 * 60_000
const mostOutput = 64 << 10

/** A program of the image that ended badly, with what it said last. */
export class ProgramFailed extends Error {
  override name = 'ProgramFailed'

  constructor(
    message: string,
    /** What it exited with; null when a signal ended it. */
    readonly code: number | null,
  ) {
    super(message)
  }
}

/** Runs a program of the image to its end and gives what it said. */
export async function runProgram({ spawn }: Pick<Machine, 'spawn'>, argv: readonly string[]): Promise<string> {
  const child = spawn({ argv, env: { PATH: path } })
  const timer = setTimeout(() => child.kill('SIGKILL'), limit)
  try {
    const texts = await Promise.all(child.output.map(tail))
    const { code, signal } = await child.exited
    if (code === 0) return texts.join('')
    const said = texts.join('\n').trim().split('\n').slice(-3).join('; ')
    const how = signal ? `ended by ${signal}` : `exit code ${code}`
    throw new ProgramFailed(`${argv.join(' ')}: ${how}${said && `: ${said}`}`, code)
  } finally {
    clearTimeout(timer)
  }
}

/** The end of what is said, so much of it as fits. */
async function tail(stream: ReadableStream<Uint8Array>): Promise<string> {
  let kept = Buffer.alloc(0)
  for await (const chunk of stream) kept = Buffer.from(Buffer.concat([kept, chunk]).subarray(-mostOutput))
  return kept.toString()
}
