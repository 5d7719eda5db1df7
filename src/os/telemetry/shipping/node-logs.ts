import type { Machine } from '../../area.ts'
import type { LogSources } from './log-feed.ts'

/** What the logs of a node are read from. */
export interface NodeLogs extends Pick<Machine, 'logFiles' | 'clock'> {
  readonly supervisor: { readonly logs: Machine['supervisor']['logs'] }
}

/** The logs of all services and of the kernel. */
export function nodeLogs({ supervisor: { logs }, logFiles, clock }: NodeLogs): Pick<LogSources, 'logs' | 'subscribe' | 'files' | 'now'> {
  return {
    logs: () => [...logs.entries(), ['kernel', logFiles.kernel] as const],
    subscribe(listener) {
      const stops = [logs.subscribe(listener), logFiles.onKernelWrite(listener)]
      return () => {
        for (const stop of stops) stop()
      }
    },
    files: logFiles,
    now: () => clock.now(),
  }
}
