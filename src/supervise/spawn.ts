/** A program to be started. */
export interface Command {
  readonly argv: readonly string[]
  readonly env: Readonly<Record<string, string>>
  readonly cwd?: string
}

/** How a program ended: with a code, or by a signal. */
export type Ending = { readonly code: number | null; readonly signal: string | null }

/** A program that has been started; `exited` resolves when it has ended and been reaped. */
export interface Child {
  readonly pid: number
  readonly output: readonly ReadableStream<Uint8Array>[]
  readonly exited: Promise<Ending>
  kill(signal: 'SIGTERM' | 'SIGKILL'): void
}

/** Starts a program; throws when it cannot be executed. A test brings its own. */
export type Spawn = (command: Command) => Child

/** Children that the runtime waits for itself: whoever reaps orphans leaves these alone. */
export const ownChildren = new Set<number>()

/** Starts a program of this machine. */
export const spawn: Spawn = ({ argv, env, cwd }) => {
  const child = Bun.spawn([...argv], { env: { ...env }, cwd, stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' })
  ownChildren.add(child.pid)
  const reaped = () => ownChildren.delete(child.pid)
  child.exited.then(reaped, reaped)
  return {
    pid: child.pid,
    output: [child.stdout, child.stderr],
    exited: child.exited.then(
      (code): Ending => (child.signalCode ? { code: null, signal: String(child.signalCode) } : { code, signal: null }),
    ),
    kill: (signal) => child.kill(signal),
  }
}
