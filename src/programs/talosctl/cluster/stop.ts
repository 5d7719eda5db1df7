import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { failedWith } from '../../../wire/errno.ts'
import { clusterPaths, discoveryLock, gatewayLock, nodeDirectory, readCluster } from '../../node-supervisor/layout.ts'
import { holderOf } from '../../node-supervisor/lock.ts'
import { isAlive, type ProcessIdentity } from '../../node-supervisor/process-identity.ts'
import type { Io } from '../io.ts'
import { checkRoot } from './host/preflight.ts'
import { checkName } from './plan/plan.ts'
import { holdCluster, noCluster } from './run-destroy.ts'

/** Milliseconds for all nodes: a supervisor kills what is left of its node after 75 s. */
const stopTimeout = 90_000

/** Shuts down the nodes of a cluster and ends its supervisors; its data and what it has on the host stay. */
export async function stopCluster(io: Io, state: string, name: string): Promise<void> {
  checkName(name)
  const directory = join(state, name)
  const record = readCluster(directory)
  if (!record?.engine) checkRoot()
  if (!record) throw noCluster(state, name)
  const unlock = holdCluster(directory)
  try {
    const started = io.now().getTime()
    const report = () => io.stderr.write(`cluster "${name}" is stopped (${((io.now().getTime() - started) / 1000).toFixed(1)}s)\n`)
    if (record.engine) {
      await stopInEngine(io, name, record.engine.socket)
      report()
      return
    }
    // Supervisors restart each other unless this file is there.
    writeFileSync(clusterPaths(directory).stopped, '', { mode: 0o600 })
    const locks = [
      gatewayLock(directory),
      discoveryLock(directory),
      ...record.nodes.map((node) => join(nodeDirectory(directory, node.name), 'supervisor.lock')),
    ]
    const running = () => locks.map(holderOf).filter((holder): holder is ProcessIdentity => holder !== undefined && isAlive(holder))
    for (const { pid } of running()) terminate(pid)
    for (const end = performance.now() + stopTimeout; running().length > 0; await io.pause(20)) {
      io.signal.throwIfAborted()
      if (performance.now() > end) {
        const pids = running().map(({ pid }) => pid)
        throw new Error(`cluster "${name}" does not stop: still running are processes ${pids.join(', ')}`)
      }
    }
    report()
  } finally {
    if (existsSync(directory)) unlock()
  }
}

async function stopInEngine(io: Io, name: string, socket: string): Promise<void> {
  const { Engine } = await import('./engine/client.ts')
  const { stopContainers } = await import('./engine/provision.ts')
  await stopContainers(await Engine.open(socket, io.signal), name)
}

function terminate(pid: number): void {
  try {
    process.kill(pid, 'SIGTERM')
  } catch (error) {
    if (!failedWith(error, 'ESRCH')) throw error
  }
}
