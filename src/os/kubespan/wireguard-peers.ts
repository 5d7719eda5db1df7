import type { WireguardPeer } from '../../linux/net/wireguard.ts'
import type { Kernel } from '../kernel.ts'

/** The peers of a WireGuard link as they are now; undefined while the link does not exist. */
export function wireguardPeers({ net, wireguard }: Pick<Kernel, 'net' | 'wireguard'>, name: string): readonly WireguardPeer[] | undefined {
  using network = net.openNetwork()
  const link = network.link(name)
  return link?.kind === 'wireguard' ? wireguard.wireguardDevice(link.index).peers : undefined
}
