/** What other areas may use of this one besides its resources and documents. */

// Kubernetes, the firewall and certificates use these networks.
export { podSubnets, serviceSubnets } from './cluster-networks.ts'
// The first installation copies these files to STATE.
export { type ConfigState, configPaths } from './config-state.ts'
// Links are declared by several kinds of documents, which are read alike.
export type { ConfigDocument } from './container.ts'
// Every area reads its sections and documents of the configuration.
export { type ClusterSection, type Declared, declared, find, findAll, type MachineSection } from './declared.ts'
// The API issues client configurations.
export { formatClientConfig, newClientConfig } from './generate/talosconfig.ts'
// Settings of components are compared as configurations are.
export { changedPlaces } from './history/changes.ts'
// Explanations name the change that preceded a failure.
export { ConfigHistory, revertReasons } from './history/history.ts'
// Explanations name the change that preceded a failure.
export { lastChangeOf } from './history/last-change.ts'
// Methods of releases are open in maintenance.
export { inMaintenance } from './maintenance.ts'
// Reads a configuration with all documents, or one that is in no resource.
export { configOf, parseConfig } from './parse.ts'
