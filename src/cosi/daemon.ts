import { type ParseArgsOptionsConfig, parseArgs } from 'node:util'
import { messageOf } from '../wire/error-message.ts'
import { createLogger, formatEntry, type Logger } from './log.ts'
import { onUnexpected, takeUnexpected } from './unexpected.ts'

/** Exit code of a daemon that cannot continue (EX_SOFTWARE of sysexits.h). */
const cannotContinue = 70

/** A daemon's name, how it is called, and its flags. */
interface DaemonArguments<Options> {
  readonly name: string
  readonly usage: string
  readonly options: Options
}

/** The flags of a daemon. When they do not parse, prints the reason and the usage, and returns undefined. */
export function daemonFlags<const Options extends ParseArgsOptionsConfig>(
  { name, usage, options }: DaemonArguments<Options>,
  args: string[],
) {
  try {
    return parseArgs({ args, options }).values
  } catch (error) {
    console.error(`${name}: ${messageOf(error)}`)
    console.error(usage)
    return undefined
  }
}

/** The beginning of a daemon: it logs to standard error, continues after unhandled errors, and SIGTERM and SIGINT abort the signal. */
export function startDaemon({ verbose }: { verbose: boolean }): { log: Logger; signal: AbortSignal } {
  const log = createLogger((entry) => {
    if (entry.level !== 'debug' || verbose) console.error(`${entry.time.toISOString()} ${formatEntry(entry)}`)
  })
  onUnexpected(takeUnexpected({ log, giveUp: () => process.exit(cannotContinue) }))
  const stop = new AbortController()
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => stop.abort())
  return { log, signal: stop.signal }
}
