import type { Machine } from '../../area.ts'
import { dashboardTerminal } from '../../runtime/public.ts'
import type { Task } from '../sequencer.ts'
import { startService } from '../services.ts'

/** Starts the dashboard on the console. A machine without a console boots anyway. */
export const startDashboard = (machine: Machine): Task => ({
  name: 'startDashboard',
  run({ log }) {
    try {
      dashboardTerminal(machine.kernel.files.readText('/proc/cmdline'))
    } catch (error) {
      log.error('start dashboard failed', { error })
      return
    }
    startService(machine, 'dashboard')
  },
})
