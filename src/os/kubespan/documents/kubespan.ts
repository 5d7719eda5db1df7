import { cidr, described, flag, ipAndPort, listOf, section, text, unsigned } from '../../../document/fields.ts'
import { defineDocument, type Reporter } from '../../../document/kind.ts'
import type { Path } from '../../../document/path.ts'
import { isSubnet } from '../../network/documents/subnet.ts'

/** Fields of KubeSpan, common to its document and `machine.network.kubespan`. */
export const kubeSpanFields = {
  enabled: described(flag, 'Switches this on.'),
  advertiseKubernetesNetworks: described(flag, 'Announces the networks of this node’s pods to the other nodes.'),
  allowDownPeerBypass: described(flag, 'Reaches a peer directly while its tunnel is down.'),
  harvestExtraEndpoints: described(flag, 'Learns addresses of peers from those they talk with.'),
  mtu: described(unsigned(32), 'The largest packet, in bytes.'),
  filters: described(
    section({
      endpoints: described(listOf(text), 'Addresses at which we can be reached; with ! in front, at which not.'),
      excludeAdvertisedNetworks: described(listOf(cidr), 'Networks that are not announced to the others.'),
    }),
    'What is left out.',
  ),
}

/** Validation rules of KubeSpan settings. */
export function kubeSpanRules(
  kubespan: { mtu?: number | undefined; filters?: { endpoints?: string[] | undefined } | undefined },
  report: Reporter,
  path: Path = [],
): void {
  if (kubespan.mtu !== undefined && kubespan.mtu < 1280)
    report.error([...path, 'mtu'], `${kubespan.mtu} is less than 1280, the minimum of IPv6`)
  for (const [index, endpoint] of (kubespan.filters?.endpoints ?? []).entries()) {
    if (!isSubnet(endpoint))
      report.error([...path, 'filters', 'endpoints', index], `${JSON.stringify(endpoint)} is not a subnet or address`)
  }
}

/** Configures the encrypted mesh between nodes. */
export const KubeSpanConfig = defineDocument({
  kind: 'KubeSpanConfig',
  description: 'The encrypted mesh between nodes.',
  schema: section(kubeSpanFields),
  rules: (kubespan, report) => kubeSpanRules(kubespan, report),
})

/** Configures additional announced endpoints of this node. */
export const KubeSpanEndpointsConfig = defineDocument({
  kind: 'KubeSpanEndpointsConfig',
  description: 'Additional endpoints at which this node is reachable, such as port forwardings.',
  schema: section({ extraAnnouncedEndpoints: described(listOf(ipAndPort), 'More addresses and ports at which we can be reached.') }),
})
