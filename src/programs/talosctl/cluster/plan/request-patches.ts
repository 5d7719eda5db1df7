/** Settings that a machine configuration has no generator for, as patches. */

import { type ClusterRecord, networksOf } from '../../../node-supervisor/layout.ts'
import type { ConfigRequest } from './configs.ts'

/** What a firewall does with connections that no rule names. */
export type FirewallAction = 'accept' | 'block'

const anywhere = ['0.0.0.0/0', '::/0']

/** The patches for all machines of a cluster. */
export function requestPatches(cluster: Pick<ClusterRecord, 'network'>, request: ConfigRequest): string[] {
  const { insecureRegistries, kubePrismPort, firewall, installImage } = request
  const machine = {
    ...(insecureRegistries.length > 0 && {
      registries: { config: Object.fromEntries(insecureRegistries.map((name) => [name, { tls: { insecureSkipVerify: true } }])) },
    }),
    ...(kubePrismPort !== undefined && {
      features: { kubePrism: kubePrismPort === 0 ? { enabled: false } : { enabled: true, port: kubePrismPort } },
    }),
    ...(installImage && { install: { image: installImage } }),
  }
  return [
    ...(Object.keys(machine).length > 0 ? [JSON.stringify({ machine })] : []),
    ...(firewall ? [firewallDocuments(firewall, networksOf(cluster))] : []),
  ]
}

/** A firewall that lets clients reach the two APIs, and nodes each other. */
function firewallDocuments(ingress: FirewallAction, nodes: string[]): string {
  const rule = (name: string, protocol: 'tcp' | 'udp', ports: (number | string)[], subnets: string[]) => ({
    apiVersion: 'v1alpha1',
    kind: 'NetworkRuleConfig',
    name,
    portSelector: { ports, protocol },
    ingress: subnets.map((subnet) => ({ subnet })),
  })
  const documents = [
    { apiVersion: 'v1alpha1', kind: 'NetworkDefaultActionConfig', ingress },
    rule('apid-ingress', 'tcp', [50_000], anywhere),
    rule('kubernetes-api-ingress', 'tcp', [6443], anywhere),
    rule('trustd-ingress', 'tcp', [50_001], nodes),
    rule('etcd-ingress', 'tcp', ['2379-2380'], nodes),
    rule('kubelet-ingress', 'tcp', [10_250], nodes),
    // The gateway forwards exposed ports of the host from its own address.
    rule('node-ports-ingress', 'tcp', ['30000-32767'], nodes),
    rule('vxlan-ingress', 'udp', [4789], nodes),
  ]
  return documents.map((document) => `${JSON.stringify(document)}\n`).join('---\n')
}
