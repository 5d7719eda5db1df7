import { accessSync, constants, existsSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { UsageError } from '../../failure.ts'
import type { Io } from '../../io.ts'

/** Looks at paths of this host; tests hand in their own. */
export interface Paths {
  exists(path: string): boolean
  /** Whether this user may connect to the socket. */
  mayConnect(path: string): boolean
}

const host: Paths = {
  exists: existsSync,
  mayConnect(path) {
    try {
      accessSync(path, constants.R_OK | constants.W_OK)
      return true
    } catch {
      return false
    }
  },
}

/** The socket of the container engine: the one that DOCKER_HOST names, else the first known one that is there. */
export function engineSocket(env: Io['env'], paths: Paths = host): string {
  const named = env.DOCKER_HOST
  if (named) return mayConnect(socketOf(named), paths)
  const known = knownSockets(env)
  const present = known.filter(paths.exists)
  const usable = present.find(paths.mayConnect)
  if (usable) return usable
  if (present[0]) return mayConnect(present[0], paths)
  throw new UsageError(
    `no container engine was found at ${known.join(', ')}: start Docker, or "podman system service --time 0 &", or name its socket with DOCKER_HOST=unix:///path`,
  )
}

/** Where Docker and Podman listen: for everyone on the host first, then for this user alone. */
function knownSockets(env: Io['env']): string[] {
  const runtime = env.XDG_RUNTIME_DIR
  return [
    '/var/run/docker.sock',
    '/run/podman/podman.sock',
    ...(runtime ? [join(runtime, 'docker.sock'), join(runtime, 'podman', 'podman.sock')] : []),
    join(env.HOME || homedir(), '.docker', 'run', 'docker.sock'),
  ]
}

function socketOf(text: string): string {
  const path = /^unix:\/\/(\/.+)$/.exec(text)?.[1]
  if (path) return path
  if (/^(tcp|http|https|ssh|npipe|fd):/.test(text))
    throw new UsageError(
      `DOCKER_HOST "${text}": nodes are made by an engine on this host: name its socket, such as unix:///var/run/docker.sock`,
    )
  throw new UsageError(`DOCKER_HOST "${text}": write the path of a socket, such as unix:///var/run/docker.sock`)
}

function mayConnect(socket: string, paths: Paths): string {
  if (!paths.exists(socket)) throw new UsageError(`there is no socket "${socket}": start the container engine, or change DOCKER_HOST`)
  if (!paths.mayConnect(socket))
    throw new UsageError(
      `"${socket}" is not accessible to this user: run the same command with sudo, or join the group that owns the socket`,
    )
  return socket
}
