import { DecodeError } from '../decode-error.ts'

/** Average number of runnable processes over 1, 5 and 15 minutes. */
export interface LoadAverage {
  load1: number
  load5: number
  load15: number
  running: number
  processes: number
}

/** Parses /proc/loadavg. */
export function parseLoadavg(text: string): LoadAverage {
  const [, load1, load5, load15, running, processes] = /^(\d+\.\d+) (\d+\.\d+) (\d+\.\d+) (\d+)\/(\d+) /.exec(text.slice(0, 256)) ?? []
  if (processes === undefined) throw new DecodeError('loadavg', 0, 'no load averages')
  return { load1: Number(load1), load5: Number(load5), load15: Number(load15), running: Number(running), processes: Number(processes) }
}
