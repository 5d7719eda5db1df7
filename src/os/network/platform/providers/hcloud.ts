/** Hetzner Cloud: one request per value; the network as a version 1 network configuration. */

import { platformNetwork } from '../declare.ts'
import { metadataOf } from '../loose.ts'
import type { Platform } from '../platform.ts'
import type { PlatformNetwork } from '../platform-config.ts'
import { readNetworkConfig } from './nocloud.ts'

const base = 'http://169.254.169.254/hetzner/v1'

export const hcloud: Platform = {
  async network({ fetch, links: known }) {
    const read = async (path: string) => (await fetch(`${base}/metadata/${path}`))?.trim() ?? ''
    const [hostname, instanceId, region, zone, address = ''] = await Promise.all(
      ['hostname', 'instance-id', 'region', 'availability-zone', 'public-ipv4'].map(read),
    )
    const config = await read('network-config')
    const links: PlatformNetwork = config ? readNetworkConfig(config, known) : platformNetwork({}, known)
    const rest = platformNetwork(
      {
        hostname,
        externalIPs: [address],
        metadata: metadataOf({
          platform: 'hcloud',
          hostname,
          region,
          zone,
          instanceId,
          providerId: instanceId && `hcloud://${instanceId}`,
        }),
      },
      known,
    )
    return { ...links, hostnames: rest.hostnames, externalIPs: rest.externalIPs, metadata: rest.metadata }
  },
  async userData({ fetch }) {
    return (await fetch(`${base}/userdata`)) || undefined
  },
}
