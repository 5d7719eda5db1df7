/** What other areas may use of this one besides its resources and documents. */

// A node announces the endpoint of its mesh.
export { endpointOf } from './mesh.ts'

// The link to a management server has one peer.
export { wireguardPeers } from './wireguard-peers.ts'

// The link to a management server needs WireGuard as well.
export { WireguardPresence } from './wireguard-presence.ts'
