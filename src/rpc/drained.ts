import type { Duplex } from 'node:stream'

/** Resolves when a stream that said it is full takes more, or will never again. */
export function drained(stream: Duplex): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      stream.off('drain', done)
      stream.off('close', done)
      resolve()
    }
    stream.on('drain', done)
    stream.on('close', done)
  })
}
