/** Runs a program as a process of the node. `exec` sets identity, control group and limits before the program starts. */

import type { Exit, RunContext, Runner } from '../definition.ts'
import type { LogRing } from '../log-ring.ts'
import { type Spawn, spawn as spawnHere } from '../spawn.ts'

/** A program and how to run it. */
export interface ProcessOptions {
  readonly argv: readonly string[]
  readonly env?: Readonly<Record<string, string>>
  readonly cwd?: string
  readonly uid?: number
  readonly gid?: number
  /** Priority, -20 to 19. */
  readonly nice?: number
  /** Runs without capabilities, with the system call filter of a service that has none, and with no_new_privs. */
  readonly confined?: boolean
  /** Restricts what the process sees of the machine. Default: everything. */
  readonly view?: View
}

/** The view of an unprivileged container: a read-only root, no processes of other users, no foreign IPC. */
export interface View {
  /** Files and folders that appear empty. */
  readonly hide: readonly string[]
  /** Files and folders, among the hidden ones or inside them, that stay visible. */
  readonly show: readonly string[]
}

/** Milliseconds to wait for the last output after the process has exited: a descendant may hold the pipe open. */
const drainTime = 200

/** Runs a program. Options that depend on the state at start are a function, called at each start. */
export function program(
  options: ProcessOptions | ((context: RunContext) => ProcessOptions | Promise<ProcessOptions>),
  spawn: Spawn = spawnHere,
): Runner {
  return async (context) => {
    const { argv, env = {}, cwd, ...limits } = typeof options === 'function' ? await options(context) : options
    const child = spawn({ argv: [...launcher(context, limits), ...argv], env, cwd })
    context.created(child.pid)
    const drained = Promise.all(child.output.map((stream) => copy(stream, context.output)))
    const exit = child.exited.then(async (end): Promise<Exit> => {
      await Promise.race([drained, context.clock.sleep(drainTime)])
      return { ok: end.code === 0, message: `Process "${context.definition.id}" ${how(end)}` }
    })
    return {
      description: `Process "${context.definition.id}" started with PID ${child.pid}`,
      pid: child.pid,
      exit,
      kill: (signal) => child.kill(signal),
    }
  }
}

/** The arguments that precede the program: `exec` and its flags. */
function launcher(
  { oom, definition: { cgroup, domain } }: RunContext,
  { uid, gid, nice, confined, view }: Omit<ProcessOptions, 'argv' | 'env' | 'cwd'>,
): string[] {
  const settings: Record<string, string | number | undefined> = {
    uid,
    gid: gid ?? uid,
    nice,
    cgroup,
    'oom-score': oom,
    'selinux-domain': domain,
  }
  const flags = Object.entries(settings).flatMap(([name, value]) => (value === undefined ? [] : [`--${name}`, String(value)]))
  if (confined) flags.push('--caps-keep', 'none', '--no-new-privs', '--seccomp')
  if (view) flags.push('--unshare', 'mnt,ipc,cgroup', '--hide-processes', '--read-only', ...viewFlags(view))
  return flags.length === 0 ? [] : ['/usr/bin/exec', ...flags, '--']
}

const viewFlags = ({ hide, show }: View) => [...hide.flatMap((path) => ['--hide', path]), ...show.flatMap((path) => ['--show', path])]

async function copy(stream: ReadableStream<Uint8Array>, output: LogRing): Promise<void> {
  try {
    for await (const chunk of stream) output.write(chunk)
  } catch {
    // A broken pipe has no more output.
  }
}

function how({ code, signal }: { code: number | null; signal: string | null }): string {
  return signal ? `was killed by ${signal}` : `exited with code ${code}`
}
