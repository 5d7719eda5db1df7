import { parameterValues, parseCommandLine } from '../../wire/command-line.ts'
import { parseDuration } from '../../wire/duration.ts'

/** Milliseconds. No device appears later, so more is a mistake. */
const longest = 10 * 60_000

/** Milliseconds that a value of `talos.device.settle_time` requests; undefined when it is no duration, or too long a one. */
export function settleTime(value: string): number | undefined {
  const given = (parseDuration(value) ?? Number.NaN) / 1e6
  return given >= 0 && given <= longest ? given : undefined
}

/** Milliseconds that a kernel command line requests. */
export const settleTimeOf = (commandLine: string): number =>
  settleTime(parameterValues(parseCommandLine(commandLine), 'talos.device.settle_time').at(-1) ?? '') ?? 0
