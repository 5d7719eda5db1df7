import type { Io } from '../../../src/programs/talosctl/io.ts'
import { pause } from '../../../src/timing/pause.ts'

/** An outside made of strings: what was written, and a fixed clock. */
export interface TextIo extends Io {
  out: string
  err: string
}

/** Pauses between two looks are what a test need not wait for. */
export const brief = (milliseconds: number, longest = 5): Promise<void> =>
  pause(Math.min(milliseconds, longest), new AbortController().signal)

/** Makes one; answers are given to questions in order. */
export function textIo({
  env = {},
  answers = [],
  now = new Date('2026-11-21T12:00:00Z'),
}: {
  env?: Record<string, string>
  answers?: string[]
  now?: Date
} = {}): TextIo {
  const decode = (chunk: string | Uint8Array) => (typeof chunk === 'string' ? chunk : new TextDecoder().decode(chunk))
  const output = (write: (text: string) => void) => ({
    write: (chunk: string | Uint8Array) => write(decode(chunk)),
    drained: () => Promise.resolve(),
    isTTY: false,
    colors: false,
    columns: 80,
  })
  const io: TextIo = {
    out: '',
    err: '',
    stdout: output((text) => {
      io.out += text
    }),
    stderr: output((text) => {
      io.err += text
    }),
    env,
    signal: new AbortController().signal,
    interactive: answers.length > 0,
    now: () => now,
    pause: brief,
    ask: async () => answers.shift() ?? '',
    askSecret: async () => answers.shift() ?? '',
    readStdin: async () => new Uint8Array(),
  }
  return io
}
