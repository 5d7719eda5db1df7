/** What other areas may use of this one besides its resources and documents. */

// The boot sequence gives the dashboard its terminal.
export { dashboardTerminal } from './dashboard-terminal.ts'
// Sequences publish events; destinations of events follow them.
export type { Events, MachineEvent } from './events.ts'
// The boot sequence starts the services of extensions.
export { extensionPrefix } from './extensions/load.ts'
// Destinations of logs follow the files of services.
export type { LogFiles } from './log-files.ts'
// The boot sequence locks the loader of modules.
export { lock, moduleLoader } from './module-loader.ts'
// The start of the machine checks the kernel parameter.
export { settleTime } from './settle-time.ts'
// The boot sequence applies the rules of udev.
export { udevadm } from './udevadm.ts'
// Explanations follow the unmet conditions of the machine to their resources.
export { unmetConditionsOf } from './unmet-conditions.ts'
