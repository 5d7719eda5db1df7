import type { Machine } from '../../area.ts'
import { dashboardTerminal } from '../../runtime/dashboard-terminal.ts'
import type { Task } from '../sequencer.ts'
import { startService } from '../services.ts'

/** The machine's own screen; a machine without one starts all the same. */
export const startDashboard = (machine: Machine): Task => ({
  name: 'startDashboard',
  run({ log }) {
    try {
      dashboardTerminal(machine.kernel.files.readText('/proc/cmdline'))
    } catch (error) {
      log.error('no dashboard is shown', { error })
      return
    }
    startService(machine, 'dashboard')
  },
})
