import { type Controller, defineController, exclusive, shared, weak } from '../../../cosi/controller.ts'
import type { Kernel } from '../../kernel.ts'
import { MetaKey } from '../../runtime/resources/meta-key.ts'
import { PlatformMetadata } from '../../runtime/resources/platform-metadata.ts'
import { splitName } from '../full-name.ts'
import { readPlatformConfig } from '../platform/platform-config.ts'
import { AddressSpec } from '../resources/address-spec.ts'
import { HostnameSpec } from '../resources/hostname-spec.ts'
import { LinkSpec } from '../resources/link-spec.ts'
import { OperatorSpec } from '../resources/operator-spec.ts'
import { PlatformConfig } from '../resources/platform-config.ts'
import { ResolverSpec } from '../resources/resolver-spec.ts'
import { RouteSpec } from '../resources/route-spec.ts'
import { TimeServerSpec } from '../resources/time-server-spec.ts'
import { routeId } from '../wishes.ts'

/** META tag 10: the network of a machine that no platform speaks for. */
const networkTag = '0x0a'

/** What was written into META for the network. */
export const loadPlatformConfig: Controller = defineController({
  name: 'network.PlatformConfigController',
  inputs: { meta: weak(MetaKey, { id: networkTag }) },
  outputs: { config: shared(PlatformConfig) },
  reconcile({ meta, config }) {
    const text = meta.get(networkTag)?.spec.value
    if (text) config.put('active', readPlatformConfig(text))
  },
})

/** What the platform says, a layer above the command line; in a container also the name it was started with. */
export const applyPlatformConfig = ({ mode, uts }: Pick<Kernel, 'mode' | 'uts'>): Controller => {
  const given = mode === 'container' ? uts.gethostname() : ''
  return defineController({
    name: 'network.PlatformConfigApplyController',
    inputs: { config: weak(PlatformConfig, { id: 'active' }) },
    outputs: {
      address: shared(AddressSpec, 'network-config'),
      link: shared(LinkSpec, 'network-config'),
      route: shared(RouteSpec, 'network-config'),
      hostname: shared(HostnameSpec, 'network-config'),
      resolver: shared(ResolverSpec, 'network-config'),
      timeServer: shared(TimeServerSpec, 'network-config'),
      operator: shared(OperatorSpec, 'network-config'),
      metadata: exclusive(PlatformMetadata),
    },
    reconcile({ config, address, link, route, hostname, resolver, timeServer, operator, metadata }) {
      const found = config.get('active')?.spec
      if (given) hostname.put('platform/hostname', { ...splitName(given), layer: 'platform' })
      metadata.put('platformmetadata', { platform: mode, ...(given ? { hostname: given } : {}), ...found?.metadata })
      if (!found) return
      for (const spec of found.addresses) address.put(`platform/${spec.linkName}/${spec.address}`, spec)
      for (const spec of found.links) link.put(`platform/${spec.name}`, spec)
      for (const spec of found.routes) route.put(`platform/${routeId(spec)}`, spec)
      for (const spec of found.hostnames.slice(0, 1)) hostname.put('platform/hostname', spec)
      for (const [index, spec] of found.resolvers.entries()) resolver.put(`platform/resolvers/${index}`, spec)
      for (const [index, spec] of found.timeServers.entries()) timeServer.put(`platform/timeservers/${index}`, spec)
      for (const spec of found.operators) operator.put(`platform/${spec.operator}/${spec.linkName}`, spec)
    },
  })
}
