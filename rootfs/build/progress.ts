/**
 * What is being done, how far it is and how long it has taken: one line rewritten in place on a terminal, a plain line
 * every ten seconds without one.
 */

/** A piece of work being shown. */
export interface Task {
  /** Shows progress, e.g. `812 of 1900 packages`. */
  at(how: string): void
  /** Ends the line with what came of it. */
  done(what?: string): void
  failed(): void
}

/** Milliseconds as `850 ms`, `4.2 s` or `3 min 07 s`. */
export function formatTime(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`
  return `${Math.floor(ms / 60_000)} min ${String(Math.floor((ms % 60_000) / 1000)).padStart(2, '0')} s`
}

/** Bytes as `140.2 MB`, in millions. */
export function formatSize(bytes: number): string {
  return bytes < 1e6 ? `${(bytes / 1e3).toFixed(1)} kB` : `${(bytes / 1e6).toFixed(1)} MB`
}

/** Starts showing a task. */
export function task(name: string, output: NodeJS.WriteStream = process.stderr): Task {
  const started = performance.now()
  const elapsed = () => formatTime(performance.now() - started)
  let how = ''
  const terminal = output.isTTY === true
  const show = () => {
    const line = `${name}${how && `: ${how}`}, ${elapsed()}`
    output.write(terminal ? `\r\u001b[K${line.slice(0, Math.max(20, (output.columns || 80) - 1))}` : `${line}\n`)
  }
  if (terminal) show()
  const timer = setInterval(show, terminal ? 500 : 10_000)
  timer.unref()
  const end = (text: string) => {
    clearInterval(timer)
    output.write(`${terminal ? '\r\u001b[K' : ''}${text}\n`)
  }
  return {
    at: (text) => {
      how = text
    },
    done: (what = 'done') => end(`${name}: ${what}, ${elapsed()}`),
    failed: () => end(`${name}: failed after ${elapsed()}`),
  }
}
