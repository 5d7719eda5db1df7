import { parameterValues, parseCommandLine } from '../../wire/command-line.ts'

const usual = 'tty2'

/** The dashboard's terminal from the kernel command line. Throws when it is not a terminal. */
export function dashboardTerminal(commandLine: string): string {
  const named = parameterValues(parseCommandLine(commandLine), 'talos.dashboard.console').at(-1) ?? usual
  if (!/^tty[A-Za-z0-9]*$/.test(named)) throw new Error(`read "talos.dashboard.console": "${named}" is no terminal, like "tty2" or "ttyS0"`)
  return named
}
