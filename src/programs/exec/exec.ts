/** exec: sets user, cgroup, capabilities, limits and OOM score, then becomes the program, with the same pid. */
import { existsSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { execve, resetForExec } from '../../linux/process/process.ts'
import { failedWith } from '../../wire/errno.ts'
import { messageOf } from '../../wire/error-message.ts'
import { describeExecReport, type ExecReport, formatExecReport } from '../../wire/exec-report.ts'
import { type ExecOptions, ExecUsageError, parseExecOptions, usage } from './options.ts'
import { prepare } from './prepare.ts'

/** Exit codes, as env(1) has them: exec itself failed, the program cannot be run, there is none. */
export const exitCode = { failed: 125, notExecutable: 126, notFound: 127 } as const

// On the status descriptor for programs, else on standard error for people.
function report(line: ExecReport, statusFd: number | undefined): void {
  if (statusFd === undefined) writeSync(2, `exec: ${describeExecReport(line)}\n`)
  else writeSync(statusFd, formatExecReport(line))
}

/** Runs exec; returns only when it could not become the program. */
export async function main(args: string[]): Promise<number> {
  if (args[0] === '--help' || args[0] === '-h') {
    console.log(usage)
    return 0
  }
  let options: ExecOptions
  try {
    options = parseExecOptions(args)
  } catch (error) {
    if (!(error instanceof ExecUsageError)) throw error
    report({ kind: 'failed', message: error.message, code: exitCode.failed }, undefined)
    return exitCode.failed
  }
  let code: number = exitCode.failed
  try {
    const env = { ...(!options.clearEnv && inherited()), ...options.env }
    const path = find(options.command[0] ?? '', env.PATH)
    prepare(options, (line) => report(line, options.statusFd))
    resetForExec()
    code = exitCode.notExecutable
    execve(path, options.command, env)
  } catch (error) {
    if (code === exitCode.notExecutable && failedWith(error, 'ENOENT')) code = exitCode.notFound
    report({ kind: 'failed', message: messageOf(error), code }, options.statusFd)
  }
  return code
}

function inherited(): Record<string, string> {
  return Object.fromEntries(Object.entries(process.env).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])))
}

function find(name: string, path = '/usr/bin:/usr/sbin:/bin:/sbin'): string {
  if (name.includes('/')) return name
  const found = path
    .split(':')
    .map((folder) => join(folder || '.', name))
    .find((candidate) => existsSync(candidate))
  return found ?? name
}
