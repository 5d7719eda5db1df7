import { closeSync, constants, openSync, rmSync, writeSync } from 'node:fs'
import { pause } from '../../timing/pause.ts'
import { failedWith } from '../../wire/errno.ts'
import { check, libc } from '../libc.ts'
import { translated } from '../system-error.ts'
import { mknod } from './files.ts'

const c = libc({ pipe2: { args: ['ptr', 'i32'], returns: 'i32' } })

const O_NONBLOCK = 0o4000
const O_CLOEXEC = 0o2000000

/** A named pipe opened for reading, so that writers never wait for a reader; its stream ends with its last writer. */
export interface EndingFifo {
  readonly path: string
  readonly stream: ReadableStream<Uint8Array>
  /** Closes the reading end and removes the pipe. */
  close(): Promise<void>
  /** A writer has opened the pipe: from now on the stream ends when the last writer closes it. */
  opened(): void
}

/** A named pipe opened for writing. */
export interface InputFifo {
  readonly path: string
  /** Resolves when the pipe has accepted the bytes: it holds 64 KiB of unread bytes. */
  write(bytes: Uint8Array): Promise<void>
  /** Closes the writing end and removes the pipe; a reader that has it open can still read its contents. */
  close(): void
}

/** Creates a named pipe, replacing whatever is at the path; its stream ends when the last writer after `opened()` closes it. */
export function makeEndingFifo(path: string): EndingFifo {
  return translated('mkfifo', path, () => {
    make(path)
    // While this descriptor is open, the reader sees an empty pipe instead of end-of-file.
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

/** Creates a named pipe for writing, replacing whatever is at the path; it needs no reader yet. */
export function makeInputFifo(path: string): InputFifo {
  return translated('mkfifo', path, () => {
    make(path)
    const fd = openSync(path, constants.O_RDWR | constants.O_NONBLOCK)
    let closed = false
    return {
      path,
      async write(bytes) {
        for (let at = 0, delay = 1; at < bytes.length && !closed; ) {
          const taken = writeSome(fd, bytes.subarray(at))
          at += taken
          delay = taken > 0 ? 1 : Math.min(delay * 2, 50)
          if (at < bytes.length) await pause(delay)
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

/** A pipe whose writing end is given away: others hold it until they close it or end. */
export interface LockPipe {
  /** The descriptor to give away. */
  readonly writer: number
  /** Closes the own copy of the writing end; call it once the descriptor was sent. */
  handedOver(): void
  /** Resolves when nobody has the writing end any more, or after `close`. */
  readonly released: Promise<void>
  /** Closes both ends. */
  close(): void
}

/** Makes a pipe as a lock that ends with its holder. */
export function makeLockPipe(): LockPipe {
  const ends = new Int32Array(2)
  check('pipe2', c().pipe2(ends, O_NONBLOCK | O_CLOEXEC))
  const [reader = -1, writer = -1] = ends
  const input = Bun.file(reader).stream().getReader()
  let own = true
  const handedOver = () => {
    if (own) closeSync(writer)
    own = false
  }
  let open = true
  const close = () => {
    handedOver()
    if (!open) return
    open = false
    // The runtime polls the descriptor until the stream is cancelled.
    input
      .cancel()
      .catch(() => {})
      .finally(() => closeSync(reader))
  }
  const drain = async () => {
    // A holder may write: that is no release.
    for (let done = false; !done; ) ({ done } = await input.read())
  }
  return { writer, handedOver, released: drain().then(close, close), close }
}

/** How many bytes a pipe accepts now, 0 when it is full. A pipe does not signal free space, so it is polled. */
function writeSome(fd: number, bytes: Uint8Array): number {
  try {
    return writeSync(fd, bytes)
  } catch (error) {
    if (failedWith(error, 'EAGAIN')) return 0
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
