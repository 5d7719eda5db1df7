/** A node as a container. */

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import { constants } from 'node:os'
import { join } from 'node:path'
import { background } from '../../cosi/background.ts'
import { killCgroup, removeCgroup } from '../../linux/process/cgroup.ts'
import type { ContainerPlan } from './container-spec.ts'
import { containerSpec, diskDirectories } from './container-spec.ts'
import { restartUntilStopped, type StopReason, type SupervisedRun } from './restart-loop.ts'

/** What running a node takes. */
export interface NodeRun extends Pick<SupervisedRun, 'console' | 'signal' | 'report'> {
  /** Path of runc. */
  runc: string
  runcRoot: string
  /** The container's id. */
  id: string
  bundle: string
  plan: ContainerPlan
}

/** Milliseconds for a shutdown: pods have 30 s by default. */
const stopTimeout = 75_000

/** Runs the node until it is shut down from inside or the signal aborts. */
export function runNode(run: NodeRun): Promise<void> {
  return restartUntilStopped({ ...run, clean: () => clean(run), once: (running) => runOnce(run, running) })
}

/** Interprets the exit of the container's first process: 0 and the two power-off exits stop the node, anything else restarts it. */
export function stopReasonOf(code: number | null, signal: NodeJS.Signals | null): StopReason {
  if (signal) return { again: true, text: `runc was killed by ${signal}` }
  if (code === 0) return { again: false, text: 'shut down' }
  // reboot(2) in a PID namespace: the parent sees SIGINT for halt and power off, SIGHUP for restart; runc adds 128.
  if (code === 128 + constants.signals.SIGINT) return { again: false, text: 'powered off' }
  if (code === 128 + constants.signals.SIGHUP) return { again: true, text: 'rebooted' }
  const name = Object.entries(constants.signals).find(([, number]) => code === 128 + number)?.[0]
  return { again: true, text: name ? `init was killed by ${name}` : `init exited with code ${code}` }
}

async function runOnce(run: NodeRun, running: () => void): Promise<StopReason> {
  prepareBundle(run)
  const args = ['--root', run.runcRoot, 'run', '--bundle', run.bundle, run.id]
  const child = spawn(run.runc, args, { stdio: ['ignore', 'pipe', 'pipe'], detached: false })
  child.stdout.on('data', (bytes: Buffer) => run.console.write(bytes))
  child.stderr.on('data', (bytes: Buffer) => run.console.write(bytes))
  const stop = () => background(stopNode(run, child), run.console.log, 'stop node failed')
  try {
    child.once('spawn', running)
    const end = new Promise<StopReason>((resolve) => {
      child.once('error', (error) => resolve({ again: true, text: error.message }))
      child.once('exit', (code, signal) => resolve(stopReasonOf(code, signal)))
    })
    run.signal.addEventListener('abort', stop)
    if (run.signal.aborted) stop()
    return await end
  } finally {
    run.signal.removeEventListener('abort', stop)
  }
}

/** Requests a shutdown from the node's init, and kills everything in the node when it does not stop in time. */
async function stopNode(run: NodeRun, child: ChildProcess): Promise<void> {
  const gone = once(child, 'exit')
  child.kill('SIGTERM')
  const timer = setTimeout(() => killCgroup(run.plan.cgroup), stopTimeout)
  await gone
  clearTimeout(timer)
}

/** Takes away what an earlier run of the node left: its processes, its record at runc, its control groups. */
async function clean(run: NodeRun): Promise<void> {
  await removeCgroup(run.plan.cgroup, { deadlineMs: 20_000 })
  const child = spawn(run.runc, ['--root', run.runcRoot, 'delete', '--force', run.id], { stdio: 'ignore' })
  await new Promise((resolve) => {
    child.once('exit', resolve)
    child.once('error', resolve)
  })
}

function prepareBundle({ bundle, plan }: NodeRun): void {
  mkdirSync(bundle, { recursive: true, mode: 0o700 })
  for (const { source, mode } of diskDirectories) mkdirSync(join(plan.disk, source), { recursive: true, mode })
  writeFileSync(join(bundle, 'config.json'), JSON.stringify(containerSpec(plan)), { mode: 0o600 })
}
