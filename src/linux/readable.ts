/** Descriptors that signal readability by SIGIO: for sockets whose message boundaries a stream would lose. */
import { errno, libc } from './libc.ts'
import { SystemError } from './system-error.ts'

const c = libc({
  fcntl: { args: ['i32', 'i32', 'i64'], returns: 'i32' },
  getpid: { args: [], returns: 'i32' },
})

const F_SETFL = 4
const F_SETOWN = 8
const O_ASYNC = 0o20000
const O_NONBLOCK = 0o4000

// The signal does not identify the descriptor, and signals may merge: each descriptor is polled.
const listeners = new Set<() => void>()
const ring = () => {
  for (const listener of listeners) listener()
}

/** Calls `drain` whenever the descriptor may have something to read, until the returned function is called. */
export function onReadable(fd: number, drain: () => void): () => void {
  if (listeners.size === 0) process.on('SIGIO', ring)
  listeners.add(drain)
  const stop = () => {
    listeners.delete(drain)
  }
  for (const [name, command, value] of [
    ['F_SETOWN', F_SETOWN, c().getpid()],
    ['F_SETFL', F_SETFL, O_ASYNC | O_NONBLOCK],
  ] as const) {
    if (c().fcntl(fd, command, value) !== -1) continue
    const reason = errno()
    stop()
    throw new SystemError('fcntl', reason, name)
  }
  return stop
}
