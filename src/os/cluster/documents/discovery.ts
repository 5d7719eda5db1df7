import * as v from 'valibot'
import { flag, section, text } from '../../../document/fields.ts'
import type { Reporter } from '../../../document/kind.ts'

/** Fields of `cluster` about its membership. */
export const membershipFields = {
  id: v.pipe(text, v.description('The unique id of the cluster.')),
  secret: v.pipe(text, v.description('The key under which members find each other.')),
  discovery: section({
    enabled: v.pipe(flag, v.description('Enable discovery of the other nodes.')),
    registries: section({
      kubernetes: section({ disabled: flag }),
      service: section({ disabled: flag, endpoint: v.pipe(text, v.description('The discovery server.')) }),
    }),
  }),
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
