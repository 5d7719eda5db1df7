import type { ServiceDefinition } from '../../../supervise/definition.ts'
import { program } from '../../../supervise/runner/program.ts'
import { parameterValues, parseCommandLine } from '../../../wire/command-line.ts'
import type { Machine } from '../../area.ts'
import { machineSocket } from './machined.ts'

const uid = 50
const usual = 'tty2'

/** The terminal that the command line names for the dashboard. Throws one line for what is none. */
export function dashboardTerminal(commandLine: string): string {
  const named = parameterValues(parseCommandLine(commandLine), 'talos.dashboard.console').at(-1) ?? usual
  if (!/^tty[A-Za-z0-9]*$/.test(named)) throw new Error(`read "talos.dashboard.console": "${named}" is no terminal, like "tty2" or "ttyS0"`)
  return named
}

/** The machine's own screen: whoever stands before it sees how the machine is and where it is reached. */
export const dashboardService = ({ kernel: { files, console }, spawn }: Machine): ServiceDefinition => {
  let named: string | undefined
  const terminal = () => {
    named ??= dashboardTerminal(files.readText('/proc/cmdline'))
    return named
  }
  return {
    id: 'dashboard',
    dependsOn: ['machined'],
    wait: () => [machineSocket, `/dev/${terminal()}`].filter((path) => !files.exists(path)).map((path) => `"${path}" to be there`),
    async prepare() {
      files.chown(`/dev/${terminal()}`, uid, uid)
      const [, screen] = /^tty(\d+)$/.exec(terminal()) ?? []
      if (screen) console.showScreen(Number(screen))
    },
    runner: program(() => ({ argv: ['/usr/sbin/dashboard', `/dev/${terminal()}`], env: { TERM: 'linux' }, uid, nice: 10 }), spawn),
    restart: 'always',
    oom: -400,
    cgroup: '/system/dashboard',
  }
}
