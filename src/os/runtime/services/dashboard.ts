import type { ServiceDefinition } from '../../../supervise/definition.ts'
import { program } from '../../../supervise/runner/program.ts'
import type { Machine } from '../../area.ts'
import { machineSocket } from '../../machine-socket.ts'
import { dashboardTerminal } from '../dashboard-terminal.ts'

const uid = 50

/** The machine's own screen: its status and its addresses. */
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
    runner: program(
      () => ({ argv: ['/usr/sbin/dashboard', `/dev/${terminal()}`], env: { TERM: 'linux' }, uid, nice: 10, confined: true }),
      spawn,
    ),
    restart: 'always',
    oom: -400,
    cgroup: '/system/dashboard',
    domain: 'dashboard_t',
  }
}
