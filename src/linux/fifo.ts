import { closeSync, constants, openSync, rmSync } from 'node:fs'
import { mknod } from './files.ts'
import { translated } from './system-error.ts'

/** A named pipe with its reading end open, so that writers never wait for a reader. */
export interface Fifo {
  readonly path: string
  readonly stream: ReadableStream<Uint8Array>
  /** Closes the reading end and removes the pipe. */
  close(): Promise<void>
}

/**
 * Makes a named pipe in place of whatever has that path. It is opened for both directions (fifo(7)): opening does not
 * wait, and the stream does not end when a writer goes.
 */
export function makeFifo(path: string): Fifo {
  return translated('mkfifo', path, () => {
    rmSync(path, { force: true })
    mknod(path, 'fifo', 0, 0, { mode: 0o600 })
    const fd = openSync(path, constants.O_RDWR | constants.O_NONBLOCK)
    const reader = Bun.file(fd).stream().getReader()
    const stream = new ReadableStream<Uint8Array>(
      {
        async pull(controller) {
          const { done, value } = await reader.read()
          if (done) controller.close()
          else controller.enqueue(value)
        },
      },
      { highWaterMark: 0 },
    )
    const close = async () => {
      await reader.cancel().catch(() => {})
      closeSync(fd)
      rmSync(path, { force: true })
    }
    return { path, stream, close }
  })
}
