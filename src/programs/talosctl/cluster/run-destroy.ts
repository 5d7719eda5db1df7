import { existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { Journal } from '../../node-supervisor/journal.ts'
import { clusterPaths, readCluster } from '../../node-supervisor/layout.ts'
import { LockedError, lock } from '../../node-supervisor/lock.ts'
import { UsageError } from '../failure.ts'
import type { Io } from '../io.ts'
import { removeContexts } from './client-files.ts'
import { archiveConsoles } from './console-archive.ts'
import { destroyCluster, isCluster } from './destroy.ts'
import { checkRoot, clusters } from './host/preflight.ts'
import { checkName } from './plan/plan.ts'
import { saveSupport } from './support-archive.ts'

/** The request to `cluster destroy`. */
export interface DestroyOptions {
  state: string
  name: string
  force: boolean
  /** Whether containers of Docker or Podman go that no folder knows of, with `force`. */
  inEngine?: boolean
  logs?: string | undefined
  /** The file for a support archive of the nodes. */
  support?: string | undefined
}

/** Destroys a cluster and takes its contexts out of the client's files. */
export async function runDestroy(io: Io, { state, name, force, inEngine, logs, support }: DestroyOptions): Promise<void> {
  checkName(name)
  const directory = join(state, name)
  if (!inEngine && !isInEngine(directory)) checkRoot()
  if (!isCluster(directory)) {
    if (force && inEngine) return removeUnknown(io, name)
    if (force) {
      io.stderr.write(`there is no cluster "${name}" in "${state}"\n`)
      return
    }
    throw noCluster(state, name)
  }
  const unlock = holdCluster(directory)
  try {
    const record = readable(directory)
    if (support) await saveSupport(io, directory, record, support)
    if (logs) await archiveConsoles(io, directory, logs)
    const started = io.now().getTime()
    io.stderr.write(`destroying cluster "${name}"${record ? ` with ${record.nodes.length} nodes` : ''} …\n`)
    if (record) await removeContexts(io, directory)
    await destroyCluster(directory)
    io.stderr.write(`cluster "${name}" is gone (${((io.now().getTime() - started) / 1000).toFixed(1)}s)\n`)
  } finally {
    if (existsSync(directory)) unlock()
  }
}

/** Takes away what an engine has of a cluster that no folder knows of. */
async function removeUnknown(io: Io, name: string): Promise<void> {
  const { Engine } = await import('./engine/client.ts')
  const { removeCluster } = await import('./engine/provision.ts')
  const { engineSocket } = await import('./engine/socket.ts')
  const engine = await Engine.open(engineSocket(io.env), io.signal)
  const count = await removeCluster(engine, name)
  io.stderr.write(`cluster "${name}" is gone from the engine at ${engine.socket}: ${count} containers\n`)
}

/** Whether a cluster, or the rest of one, is in Docker or Podman: then root is not needed to take it away. */
function isInEngine(directory: string): boolean {
  return new Journal(clusterPaths(directory).journal).entries().some(({ kind }) => kind === 'engine')
}

/** A cluster that is not there, with those that are. */
export function noCluster(state: string, name: string): UsageError {
  const known = clusters(state).map((cluster) => cluster.name)
  const others = known.length > 0 ? `: there are ${known.join(', ')}` : ''
  return new UsageError(`there is no cluster "${name}" in "${state}"${others}; name another with --name, another folder with --state`)
}

/** Keeps others from changing the same cluster; the directory is made when it is not there. */
export function holdCluster(directory: string): () => void {
  mkdirSync(directory, { recursive: true, mode: 0o700 })
  try {
    return lock(clusterPaths(directory).lock)
  } catch (error) {
    if (error instanceof LockedError)
      throw new UsageError(`process ${error.holder.pid} is changing this cluster: wait for it to end, or end it`)
    throw error
  }
}

function readable(directory: string) {
  try {
    return readCluster(directory)
  } catch {
    return undefined
  }
}
