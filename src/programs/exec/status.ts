/**
 * What exec tells its parent: one JSON object a line on the status descriptor, which execve closes.
 * So: lines `clamped` as they happen; then the end of the stream means the program runs, or a
 * line `failed` comes before it. Without a descriptor the same is said on standard error in words.
 */
import { writeSync } from 'node:fs'

/** One line of the report. */
export type ExecReport =
  | { kind: 'clamped'; what: string; wanted: number; got: number; reason: string }
  | { kind: 'failed'; message: string; code: number }

/** Exit codes, as env(1) has them: exec itself failed, the program cannot be run, there is none. */
export const exitCode = { failed: 125, notExecutable: 126, notFound: 127 } as const

/** Sends a line to the parent. */
export function report(line: ExecReport, statusFd: number | undefined): void {
  if (statusFd === undefined) writeSync(2, `exec: ${inWords(line)}\n`)
  else writeSync(statusFd, `${JSON.stringify(line)}\n`)
}

function inWords(line: ExecReport): string {
  if (line.kind === 'failed') return line.message
  return `${line.what} ${line.wanted} clamped to ${line.got}: ${line.reason}`
}

/** Reads what exec wrote to its status descriptor; what is no report is passed over. */
export function parseReports(text: string): ExecReport[] {
  return text
    .slice(0, 1 << 16)
    .split('\n')
    .flatMap((line) => {
      try {
        const value: unknown = JSON.parse(line)
        return isReport(value) ? [value] : []
      } catch {
        return [] // not a line of ours
      }
    })
}

function isReport(value: unknown): value is ExecReport {
  if (typeof value !== 'object' || value === null || !('kind' in value)) return false
  if (value.kind === 'failed') return 'message' in value && typeof value.message === 'string'
  return value.kind === 'clamped' && 'what' in value && typeof value.what === 'string' && 'got' in value && 'wanted' in value
}
