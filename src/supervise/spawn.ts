/** A program to be started. */
export interface Command {
  readonly argv: readonly string[]
  readonly env: Readonly<Record<string, string>>
  readonly cwd?: string
}

/** A program that has been started; `exited` resolves when it has ended and been reaped. */
export interface Child {
  readonly pid: number
  readonly output: readonly ReadableStream<Uint8Array>[]
  readonly exited: Promise<{ code: number | null; signal: string | null }>
  kill(signal: 'SIGTERM' | 'SIGKILL'): void
}

/** Starts a program; throws when it cannot be executed. A test brings its own. */
export type Spawn = (command: Command) => Child

/** Starts a program of this machine. */
export const spawn: Spawn = ({ argv, env, cwd }) => {
  const child = Bun.spawn([...argv], { env: { ...env }, cwd, stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' })
  return {
    pid: child.pid,
    output: [child.stdout, child.stderr],
    exited: child.exited.then((code) => ({ code: child.signalCode ? null : code, signal: child.signalCode ?? null })),
    kill: (signal) => child.kill(signal),
  }
}
