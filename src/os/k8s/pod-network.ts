import { isIPv6 } from '../../wire/prefix.ts'

/** What the pods' network on this node is made from. */
export interface PodNetwork {
  /** This node's share, one a family. */
  podCIDRs: readonly string[]
  /** The largest packet between pods. */
  mtu: number
}

/** What VXLAN adds to a packet. */
export const vxlanOverhead = 50

/** The CNI configuration for flannel's network: a bridge, addresses of this node's share, ports of the host. */
export function podNetworkConflist({ podCIDRs, mtu }: PodNetwork): string {
  const routes = [podCIDRs.some((cidr) => !isIPv6(cidr)) && { dst: '0.0.0.0/0' }, podCIDRs.some(isIPv6) && { dst: '::/0' }].filter(Boolean)
  return `${JSON.stringify(
    {
      name: 'cbr0',
      cniVersion: '1.0.0',
      plugins: [
        {
          type: 'bridge',
          bridge: 'cni0',
          mtu,
          isGateway: true,
          hairpinMode: true,
          // What leaves the cluster is masqueraded by flannel.
          ipMasq: false,
          ipam: {
            type: 'host-local',
            // Pods do not outlive the node's start, nor should the list of their addresses.
            dataDir: '/run/cni/networks',
            ranges: podCIDRs.map((subnet) => [{ subnet }]),
            routes,
          },
        },
        { type: 'portmap', capabilities: { portMappings: true } },
      ],
    },
    null,
    2,
  )}\n`
}
