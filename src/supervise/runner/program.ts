/** Runs a program as a process of the node: identity, control group and limits are set by `exec` before the program begins. */

import type { Exit, Life, Runner } from '../definition.ts'
import type { LogRing } from '../log-ring.ts'
import { type Spawn, spawn as spawnHere } from '../spawn.ts'

/** A program and how it is to run. */
export interface ProcessOptions {
  readonly argv: readonly string[]
  readonly env?: Readonly<Record<string, string>>
  readonly cwd?: string
  readonly uid?: number
  readonly gid?: number
  /** Priority, -20 to 19. */
  readonly nice?: number
  /** It has no capabilities, only the system calls of a service without any, and nothing it starts gains more. */
  readonly confined?: boolean
  /** What it sees of the machine, where that is not everything. */
  readonly view?: View
}

/** What a container without privileges would see: nothing can be written, no process of another user and no other's IPC is there. */
export interface View {
  /** Files and folders that are empty to it. */
  readonly hide: readonly string[]
  /** Those of them, or in them, that are there all the same. */
  readonly show: readonly string[]
}

/** Milliseconds to wait for the last output after the process has ended: a descendant may hold the pipe open. */
const drainTime = 200

/** Runs a program; options that need thought are a function, asked at each start. */
export function program(
  options: ProcessOptions | ((life: Life) => ProcessOptions | Promise<ProcessOptions>),
  spawn: Spawn = spawnHere,
): Runner {
  return async (life) => {
    const { argv, env = {}, cwd, ...limits } = typeof options === 'function' ? await options(life) : options
    const child = spawn({ argv: [...launcher(life, limits), ...argv], env, cwd })
    life.created(child.pid)
    const drained = Promise.all(child.output.map((stream) => copy(stream, life.output)))
    const exit = child.exited.then(async (end): Promise<Exit> => {
      await Promise.race([drained, life.clock.sleep(drainTime)])
      return { ok: end.code === 0, message: `Process "${life.definition.id}" ${how(end)}` }
    })
    return {
      description: `Process "${life.definition.id}" started with PID ${child.pid}`,
      pid: child.pid,
      exit,
      kill: (signal) => child.kill(signal),
    }
  }
}

/** The words before the program: `exec` with what it has to set. */
function launcher(
  { oom, definition: { cgroup } }: Life,
  { uid, gid, nice, confined, view }: Omit<ProcessOptions, 'argv' | 'env' | 'cwd'>,
): string[] {
  const settings: Record<string, string | number | undefined> = { uid, gid: gid ?? uid, nice, cgroup, 'oom-score': oom }
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
    // A pipe that breaks has no more to say.
  }
}

function how({ code, signal }: { code: number | null; signal: string | null }): string {
  return signal ? `was killed by ${signal}` : `exited with code ${code}`
}
