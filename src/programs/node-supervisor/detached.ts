import { spawn } from 'node:child_process'
import { appendFileSync, closeSync, mkdirSync, openSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import type { Journal } from './journal.ts'
import { clusterPaths } from './layout.ts'

/** How this very binary is called again; while developing, that is the runtime with the entry point. */
export function selfCommand(): [command: string, ...args: string[]] {
  const compiled = Bun.main.startsWith('/$bunfs/') || Bun.main.startsWith('B:/~BUN/')
  // The file may have been replaced or removed since: what goes on has to be the very same program.
  if (compiled) return ['/proc/self/exe']
  return [process.execPath, new URL('../../main.ts', import.meta.url).pathname]
}

/** Starts a program of this binary that outlives us, in a session of its own, its output in a file; the journal knows of it before. */
export function startDetached(args: string[], logFile: string, journal: Journal, node?: string): void {
  journal.write({ kind: 'program', args, node })
  mkdirSync(dirname(logFile), { recursive: true, mode: 0o700 })
  const log = openSync(logFile, 'a', 0o600)
  try {
    const [command, ...before] = selfCommand()
    const child = spawn(command, [...before, ...args], {
      detached: true,
      stdio: ['ignore', log, log],
      cwd: '/',
      argv0: before.length === 0 ? 'ichor' : undefined,
    })
    child.on('error', (error) => appendFileSync(logFile, `start ${args.join(' ')}: ${error.message}\n`))
    child.unref()
  } finally {
    closeSync(log)
  }
}

/** Starts the supervisor of a cluster's gateway. */
export function startGatewaySupervisor(directory: string, journal: Journal): void {
  startDetached(['node-supervisor', '--gateway-of', directory], join(clusterPaths(directory).gateway, 'supervisor.log'), journal)
}

/** Starts the supervisor of a node. */
export function startNodeSupervisor(directory: string, journal: Journal): void {
  startDetached(['node-supervisor', '--node-dir', directory], join(directory, 'supervisor.log'), journal, basename(directory))
}

/** Starts a cluster's discovery server. */
export function startDiscovery(directory: string, listen: string, journal: Journal): void {
  startDetached(
    ['discovery', '--listen', listen, '--cluster-dir', directory],
    join(clusterPaths(directory).gateway, 'discovery.log'),
    journal,
  )
}
