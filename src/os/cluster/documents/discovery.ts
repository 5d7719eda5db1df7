import type * as v from 'valibot'
import { described, flag, section, text } from '../../../document/fields.ts'
import type { Reporter } from '../../../document/kind.ts'

/** Fields of `cluster` about its membership. */
export const membershipFields = {
  id: described(text, 'The unique id of the cluster.'),
  secret: described(text, 'The key under which members find each other.'),
  discovery: described(
    section({
      enabled: described(flag, 'Enable discovery of the other nodes.'),
      registries: described(
        section({
          kubernetes: described(section({ disabled: described(flag, 'Switches this off.') }), 'On the nodes in Kubernetes.'),
          service: described(
            section({ disabled: described(flag, 'Switches this off.'), endpoint: described(text, 'The discovery server.') }),
            'At a service on the network.',
          ),
        }),
        'Where they look for each other.',
      ),
    }),
    'How machines of the cluster find each other.',
  ),
}

const membership = section(membershipFields)

/** The default discovery server. */
export const defaultDiscoveryEndpoint = 'https://discovery.talos.dev/'

/** Rules of these fields. */
export function membershipRules({ id, secret, discovery }: v.InferOutput<typeof membership>, report: Reporter): void {
  const service = discovery?.registries?.service
  if (!discovery?.enabled || service?.disabled) return
  const path = ['cluster', 'discovery', 'registries', 'service', 'endpoint']
  const endpoint = service?.endpoint ?? defaultDiscoveryEndpoint
  if (!URL.canParse(endpoint)) report.error(path, `${JSON.stringify(endpoint)} is not a URL`)
  else if (!['', '/'].includes(new URL(endpoint).pathname)) report.error(path, 'the URL of the discovery server cannot have a path')
  if (!id) report.error(['cluster', 'id'], 'the discovery service needs the id of the cluster')
  if (!secret) report.error(['cluster', 'secret'], 'the discovery service needs the secret of the cluster')
}
