/** What the kernel command line requests for the end of a machine: of a start that failed, and of a shutdown. */
import { parameterValues, parseCommandLine } from '../../../wire/command-line.ts'

const last = (commandLine: string, name: string) => parameterValues(parseCommandLine(commandLine), name).at(-1)

/** Whether a machine that cannot start is left as it is, and not restarted. */
export const staysOnFailure = (commandLine: string): boolean => last(commandLine, 'panic') === '0'

/** Whether a machine that is shut down stays powered. */
export const haltsOnShutdown = (commandLine: string): boolean => last(commandLine, 'talos.shutdown') === 'halt'
