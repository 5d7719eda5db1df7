/** What other areas may use of this one besides its resources and documents. */

// Addresses of etcd and of the node are chosen by subnets of the configuration.
export { allowedAddresses } from './allowed-addresses.ts'
// Services wait for the network and the clock.
export { type NetworkNeed, networkConditions, timeConditions } from './conditions.ts'
// Explanations probe name servers.
export { answersQueries } from './dns/upstream.ts'
// Certificates contain shared addresses; nodes and etcd do not use them as their own.
export { sharedAddresses } from './shared-addresses.ts'
// The networks of pods are those of their namespaces.
export type { NetworkOf } from './sockets.ts'
