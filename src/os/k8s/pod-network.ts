import { isIPv6 } from '../../wire/prefix.ts'

/** The inputs of the pod network on this node. */
export interface PodNetwork {
  /** This node's pod CIDRs, one per address family. */
  podCIDRs: readonly string[]
  /** The largest packet between pods. */
  mtu: number
}

/** The overhead of VXLAN per packet. */
export const vxlanOverhead = 50

/** The CNI configuration for flannel's network: a bridge, addresses of this node's CIDRs, host ports. */
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
          // flannel masquerades what leaves the cluster.
          ipMasq: false,
          ipam: {
            type: 'host-local',
            // Pods do not survive a restart of the node, nor should the list of their addresses.
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
