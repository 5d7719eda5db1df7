/** What other areas may use of this one besides its resources and documents. */

// The boot sequence gives the dashboard its terminal.
export { dashboardTerminal } from './dashboard-terminal.ts'
// The boot sequence starts the services of extensions.
export { extensionPrefix } from './extensions/load.ts'
// The boot sequence locks the loader of modules.
export { lock, moduleLoader } from './module-loader.ts'
// The boot sequence applies the rules of udev.
export { udevadm } from './udevadm.ts'
// Explanations follow the unmet conditions of the machine to their resources.
export { unmetConditionsOf } from './unmet-conditions.ts'
