import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'
import { PlatformMetadata } from '../../runtime/resources/platform-metadata.ts'
import { ip } from '../../values.ts'
import { AddressSpec } from './address-spec.ts'
import { HostnameSpec } from './hostname-spec.ts'
import { LinkSpec } from './link-spec.ts'
import { OperatorSpec } from './operator-spec.ts'
import { ProbeSpec } from './probe-spec.ts'
import { ResolverSpec } from './resolver-spec.ts'
import { RouteSpec } from './route-spec.ts'
import { TimeServerSpec } from './time-server-spec.ts'

const listOf = <T extends v.GenericSchema>(schema: T) => v.optional(v.array(schema), [])

/** What the platform says of the network. */
export const PlatformConfig = defineResource({
  type: 'PlatformConfigs.net.talos.dev',
  namespace: 'network',
  displayType: 'PlatformConfig',
  spec: v.object({
    addresses: listOf(AddressSpec.schema),
    links: listOf(LinkSpec.schema),
    routes: listOf(RouteSpec.schema),
    hostnames: listOf(HostnameSpec.schema),
    resolvers: listOf(ResolverSpec.schema),
    timeServers: listOf(TimeServerSpec.schema),
    operators: listOf(OperatorSpec.schema),
    externalIPs: v.optional(v.array(ip), []),
    probes: v.optional(v.array(ProbeSpec.schema)),
    metadata: v.optional(PlatformMetadata.schema),
  }),
})
