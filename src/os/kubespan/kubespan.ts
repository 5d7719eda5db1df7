import type { Area } from '../area.ts'
import { configKubeSpan } from './controllers/config.ts'
import { harvestEndpoints } from './controllers/endpoint.ts'
import { configKubeSpanIdentity } from './controllers/identity.ts'
import { configPeers } from './controllers/peer-spec.ts'
import { runMesh } from './controllers/run-mesh.ts'
import { resources } from './resource-types.ts'
import { WireguardPresence } from './wireguard-presence.ts'

/** The kubespan area: the WireGuard mesh between nodes. */
export const kubespan: Area = {
  name: 'kubespan',
  resources,
  parts({ kernel }) {
    const presence = new WireguardPresence(kernel)
    return {
      controllers: [configKubeSpan, configKubeSpanIdentity(kernel, presence), configPeers, harvestEndpoints, runMesh(kernel, presence)],
    }
  },
}
