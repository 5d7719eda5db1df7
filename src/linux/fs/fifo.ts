import { closeSync, constants, openSync, rmSync, writeSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { translated } from '../system-error.ts'
import { mknod } from './files.ts'

/** A named pipe with its reading end open, so that writers never wait for a reader; its stream ends with its writers. */
export interface EndingFifo {
  readonly path: string
  readonly stream: ReadableStream<Uint8Array>
  /** Closes the reading end and removes the pipe. */
  close(): Promise<void>
  /** The writers have come: from now on the stream ends when the last of them goes. */
  opened(): void
}

/** A named pipe with its writing end open. */
export interface InputFifo {
  readonly path: string
  /** Resolves when the pipe has taken the bytes: it holds 64 KiB that nobody has read. */
  write(bytes: Uint8Array): Promise<void>
  /** Closes the writing end and removes the pipe; what is in it can still be read by who has it open. */
  close(): void
}

/** Makes a named pipe, in place of whatever has that path, whose stream ends when the last writer after `opened()` has gone. */
export function makeEndingFifo(path: string): EndingFifo {
  return translated('mkfifo', path, () => {
    make(path)
    // While this one is open, the other sees an empty pipe instead of the end of one that nobody writes to.
    let holder: number | undefined = openSync(path, constants.O_RDWR | constants.O_NONBLOCK)
    const { stream, close } = reading(path, openSync(path, constants.O_RDONLY | constants.O_NONBLOCK))
    const opened = () => {
      if (holder !== undefined) closeSync(holder)
      holder = undefined
    }
    return {
      path,
      stream,
      opened,
      close: async () => {
        opened()
        await close()
      },
    }
  })
}

/** Makes a named pipe to write to, in place of whatever has that path; nobody needs to read it yet. */
export function makeInputFifo(path: string): InputFifo {
  return translated('mkfifo', path, () => {
    make(path)
    const fd = openSync(path, constants.O_RDWR | constants.O_NONBLOCK)
    let closed = false
    return {
      path,
      async write(bytes) {
        for (let at = 0, pause = 1; at < bytes.length && !closed; ) {
          const taken = writeSome(fd, bytes.subarray(at))
          at += taken
          pause = taken > 0 ? 1 : Math.min(pause * 2, 50)
          if (at < bytes.length) await sleep(pause)
        }
      },
      close() {
        if (!closed) closeSync(fd)
        closed = true
        rmSync(path, { force: true })
      },
    }
  })
}

/** How many bytes a pipe takes now; a full one takes none. It does not say when it has room again, so it is asked. */
function writeSome(fd: number, bytes: Uint8Array): number {
  try {
    return writeSync(fd, bytes)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EAGAIN') return 0
    throw error
  }
}

function make(path: string): void {
  rmSync(path, { force: true })
  mknod(path, 'fifo', 0, 0, { mode: 0o600 })
}

function reading(path: string, fd: number): Pick<EndingFifo, 'stream' | 'close'> {
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
  let closed = false
  const close = async () => {
    if (closed) return
    closed = true
    await reader.cancel().catch(() => {})
    closeSync(fd)
    rmSync(path, { force: true })
  }
  return { stream, close }
}
