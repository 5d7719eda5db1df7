/** A program to start. */
export interface Command {
  readonly argv: readonly string[]
  readonly env: Readonly<Record<string, string>>
  readonly cwd?: string | undefined
}

/** The exit code of a program, or the signal that killed it. */
export type ExitStatus = { readonly code: number | null; readonly signal: string | null }

/** A program that has been started; `exited` resolves when it has exited and been reaped. */
export interface Child {
  readonly pid: number
  readonly output: readonly ReadableStream<Uint8Array>[]
  readonly exited: Promise<ExitStatus>
  kill(signal: 'SIGTERM' | 'SIGKILL'): void
}

/** Starts a program; throws when it cannot be executed. Tests pass their own. */
export type Spawn = (command: Command) => Child

/** Children that the runtime reaps itself: the reaper of orphans must leave them alone. */
export const ownChildren = new Set<number>()

/** Starts a program on this machine. */
export const spawn: Spawn = ({ argv, env, cwd }) => {
  const child = Bun.spawn([...argv], { env: { ...env }, ...(cwd && { cwd }), stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' })
  ownChildren.add(child.pid)
  const reaped = () => ownChildren.delete(child.pid)
  child.exited.then(reaped, reaped)
  return {
    pid: child.pid,
    output: [child.stdout, child.stderr],
    exited: child.exited.then(
      (code): ExitStatus => (child.signalCode ? { code: null, signal: String(child.signalCode) } : { code, signal: null }),
    ),
    kill: (signal) => child.kill(signal),
  }
}
