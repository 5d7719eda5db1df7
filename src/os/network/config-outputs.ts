import { shared } from '../../cosi/controller.ts'
import { AddressSpec } from './resources/address.ts'
import { HostnameSpec } from './resources/hostname.ts'
import { LinkSpec } from './resources/link.ts'
import { ResolverSpec } from './resources/resolver.ts'
import { RouteSpec } from './resources/route.ts'
import { TimeServerSpec } from './resources/time-server.ts'

/** What a source of network settings declares in its layer. */
export const configOutputs = {
  address: shared(AddressSpec, 'network-config'),
  link: shared(LinkSpec, 'network-config'),
  route: shared(RouteSpec, 'network-config'),
  hostname: shared(HostnameSpec, 'network-config'),
  resolver: shared(ResolverSpec, 'network-config'),
  timeServer: shared(TimeServerSpec, 'network-config'),
}
