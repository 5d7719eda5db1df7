import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'
import { PlatformMetadata } from '../../runtime/resources/platform-metadata.ts'
import { ip } from '../../values.ts'
import { AddressSpec } from './address.ts'
import { HostnameSpec } from './hostname.ts'
import { LinkSpec } from './link.ts'
import { OperatorSpec } from './operator-spec.ts'
import { ProbeSpec } from './probe.ts'
import { ResolverSpec } from './resolver.ts'
import { RouteSpec } from './route.ts'
import { TimeServerSpec } from './time-server.ts'

const listOf = <T extends v.GenericSchema>(schema: T) => v.optional(v.array(schema), [])

/** The network configuration of the platform. */
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
