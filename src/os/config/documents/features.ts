import type * as v from 'valibot'
import { described, flag, integer, listOf, section, text } from '../../../document/fields.ts'
import type { Mode, Reporter } from '../../../document/kind.ts'
import { notYet } from '../../../document/unsupported.ts'
import { allRoles, isRole } from '../../../wire/x509/roles.ts'

/** `machine.features`: optional features. */
export const features = section({
  rbac: described(notYet(flag, 'roles are always checked, leave it out', { accepts: [true] }), 'Whether roles limit what clients may do.'),
  stableHostname: described(flag, 'Names the machine by its identity when nothing else does.'),
  kubernetesTalosAPIAccess: described(
    section({
      enabled: described(flag, 'Switches this on.'),
      allowedRoles: described(listOf(text), 'Roles that pods may have; without any, no pod gets access.'),
      allowedKubernetesNamespaces: described(listOf(text), 'Namespaces whose pods may ask for access; without any, none may.'),
    }),
    'Let pods in some namespaces reach the machine API.',
  ),
  apidCheckExtKeyUsage: described(
    notYet(flag, 'the usage of client certificates is always checked, leave it out', { accepts: [true] }),
    'Whether certificates of clients have to be meant for clients.',
  ),
  diskQuotaSupport: described(flag, 'Count the space that pods use with project quotas.'),
  kubePrism: described(
    section({ enabled: described(flag, 'Switches this on.'), port: described(integer, 'The port on the loopback address.') }),
    'A load balancer on every node, in front of all API servers.',
  ),
  hostDNS: described(
    section({
      enabled: described(flag, 'Switches this on.'),
      forwardKubeDNSToHost: described(flag, "Whether the cluster's DNS forwards to the node's resolver."),
      resolveMemberNames: described(flag, 'Whether names of the machines of the cluster are answered.'),
    }),
    "The node's own caching resolver.",
  ),
  imageCache: described(
    section({ localEnabled: described(flag, 'Whether they are served, and copied from the medium to the volume IMAGECACHE.') }),
    'Container images that came with the medium or the disk image.',
  ),
  nodeAddressSortAlgorithm: described(text, 'How addresses of the node are put in order: v1 or v2.'),
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
    if (!isRole(role))
      report.error(at('kubernetesTalosAPIAccess', 'allowedRoles', index), `${JSON.stringify(role)} is not one of ${allRoles.join(', ')}`)
  }
  if (algorithm && !['v1', 'v2'].includes(algorithm))
    report.error(at('nodeAddressSortAlgorithm'), `${JSON.stringify(algorithm)} is not v1 or v2`)
}
