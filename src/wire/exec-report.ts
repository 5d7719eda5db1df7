/**
 * The report of exec to its parent: one JSON object per line on a descriptor that execve closes. Lines `clamped` are sent as they
 * occur. The end of the stream then means that the program runs, unless a line `failed` precedes it.
 */

/** One line of the report. */
export type ExecReport =
  | { kind: 'clamped'; what: string; wanted: number; got: number; reason: string }
  | { kind: 'failed'; message: string; code: number }

/** Formats a report as its line. */
export function formatExecReport(report: ExecReport): string {
  return `${JSON.stringify(report)}\n`
}

/** Describes a report for a message. */
export function describeExecReport(report: ExecReport): string {
  if (report.kind === 'failed') return report.message
  return `${report.what} ${report.wanted} clamped to ${report.got}: ${report.reason}`
}

/** Parses the output of exec; lines that are not reports (truncated ones, for example) are skipped. */
export function parseExecReports(text: string): ExecReport[] {
  return text
    .slice(0, 1 << 16)
    .split('\n')
    .flatMap((line) => {
      try {
        const value: unknown = JSON.parse(line)
        return isReport(value) ? [value] : []
      } catch {
        return []
      }
    })
}

function isReport(value: unknown): value is ExecReport {
  if (typeof value !== 'object' || value === null || !('kind' in value)) return false
  if (value.kind === 'failed')
    return 'message' in value && typeof value.message === 'string' && 'code' in value && typeof value.code === 'number'
  return (
    value.kind === 'clamped' &&
    'what' in value &&
    typeof value.what === 'string' &&
    'wanted' in value &&
    typeof value.wanted === 'number' &&
    'got' in value &&
    typeof value.got === 'number' &&
    'reason' in value &&
    typeof value.reason === 'string'
  )
}
