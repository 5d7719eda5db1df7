import * as v from 'valibot'
import { flag, integer, listOf, section, text } from '../../../document/fields.ts'
import type { Mode, Reporter } from '../../../document/kind.ts'
import { notYet } from '../../../document/unsupported.ts'

/** Names of the roles that a client may have. */
export const roleNames = [
  'os:admin',
  'os:operator',
  'os:reader',
  'os:etcd:backup',
  'os:image:verifier',
  'os:meta:writer',
  'os:impersonator',
]

/** `machine.features`: optional features. */
export const features = section({
  rbac: notYet(flag, 'roles are always checked, leave it out', { accepts: [true] }),
  stableHostname: flag,
  kubernetesTalosAPIAccess: v.pipe(
    section({
      enabled: notYet(flag, 'pods get no credentials for the machine API, give them a client configuration by a Secret of your own'),
      allowedRoles: listOf(text),
      allowedKubernetesNamespaces: listOf(text),
    }),
    v.description('Let pods in some namespaces reach the machine API.'),
  ),
  apidCheckExtKeyUsage: notYet(flag, 'the usage of client certificates is always checked, leave it out', { accepts: [true] }),
  diskQuotaSupport: v.pipe(flag, v.description('Count the space that pods use with project quotas.')),
  kubePrism: v.pipe(
    section({ enabled: flag, port: integer }),
    v.description('A load balancer on every node, in front of all API servers.'),
  ),
  hostDNS: v.pipe(
    section({ enabled: flag, forwardKubeDNSToHost: flag, resolveMemberNames: flag }),
    v.description("The node's own caching resolver."),
  ),
  imageCache: section({ localEnabled: flag }),
  nodeAddressSortAlgorithm: text,
})

/** Rules of the section. */
export function featureRules(section: v.InferOutput<typeof features> = {}, report: Reporter, mode: Mode, isWorker: boolean): void {
  const at = (...path: (string | number)[]) => ['machine', 'features', ...path]
  const { hostDNS, kubernetesTalosAPIAccess: access, nodeAddressSortAlgorithm: algorithm } = section
  if (mode === 'container' && !(hostDNS?.enabled && hostDNS.forwardKubeDNSToHost)) {
    report.error(at('hostDNS'), 'a container needs "enabled: true" and "forwardKubeDNSToHost: true"')
  }
  if (hostDNS?.forwardKubeDNSToHost && !hostDNS.enabled) report.error(at('hostDNS', 'forwardKubeDNSToHost'), 'needs "enabled: true"')
  if (access?.enabled && isWorker) report.error(at('kubernetesTalosAPIAccess'), 'only control planes give access')
  for (const [index, role] of (access?.allowedRoles ?? []).entries()) {
    if (!roleNames.includes(role))
      report.error(at('kubernetesTalosAPIAccess', 'allowedRoles', index), `${JSON.stringify(role)} is not one of ${roleNames.join(', ')}`)
  }
  if (algorithm && !['v1', 'v2'].includes(algorithm))
    report.error(at('nodeAddressSortAlgorithm'), `${JSON.stringify(algorithm)} is not v1 or v2`)
}
