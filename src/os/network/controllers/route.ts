import { type Controller, defineController, shared, strong, weak } from '../../../cosi/controller.ts'
import { merge, strongest } from '../../../cosi/merge.ts'
import type { SpecOf } from '../../../cosi/resource.ts'
import { declared } from '../../config/declared.ts'
import { MachineConfig } from '../../config/resources/machine-config.ts'
import type { Kernel } from '../../kernel.ts'
import { routeProtocolNumber, routeTableNumber, routeTypeNumber, scopeNumber } from '../kernel-names.ts'
import { AddressStatus } from '../resources/address-status.ts'
import { LinkStatus } from '../resources/link-status.ts'
import { RouteSpec } from '../resources/route-spec.ts'

type Spec = SpecOf<typeof RouteSpec>

const defaultMetric = 1024

/** The routes the machine configuration wishes. */
export const configRoutes: Controller = defineController({
  name: 'network.RouteConfigController',
  inputs: { config: weak(MachineConfig, { id: 'v1alpha1' }) },
  outputs: { spec: shared(RouteSpec, 'network-config') },
  reconcile({ config, spec }) {
    const found = declared(config.get('v1alpha1'))
    const put = (linkName: string, route: Record<string, any>) => {
      const wish = routeSpec(linkName, route)
      spec.put(`configuration/${linkName}/${wish.family}/${wish.gateway}/${wish.dst}/${wish.priority}`, wish)
    }
    for (const { interface: name, routes = [] } of found?.machine.network?.interfaces ?? [])
      for (const route of name ? routes : []) put(name, route)
    for (const document of found?.documents ?? [])
      if (document.kind === 'LinkConfig')
        for (const { destination, ...route } of document.routes ?? []) put(document.name, { network: destination, ...route })
  },
})

/** One wish for each route. */
export const mergeRoutes: Controller = merge('RouteMergeControllers.net.talos.dev', RouteSpec, strongest)

/** Gives the kernel its routes; foreign ones are never touched, one wished no more is taken away again. */
export const applyRoutes = ({ net }: Pick<Kernel, 'net'>): Controller => {
  const given = new Map<string, Spec>()
  return defineController({
    name: 'network.RouteSpecController',
    inputs: { specs: strong(RouteSpec), links: weak(LinkStatus), addresses: weak(AddressStatus) },
    outputs: {},
    reconcile({ specs, links, log }) {
      using network = net.openNetwork()
      const wanted = new Map(specs.list().map(({ metadata, spec }) => [metadata.id, spec]))
      const change = ({ dst, src, gateway, outLinkName, table, priority, scope, type, protocol, mtu, family }: Spec) => ({
        family: family === 'inet6' ? 10 : 2,
        ...(dst ? { destination: dst } : {}),
        ...(src ? { preferredSource: src } : {}),
        ...(gateway ? { gateway } : {}),
        ...(outLinkName ? { link: links.get(outLinkName)?.spec.index } : {}),
        table: routeTableNumber(table),
        priority: priority ?? defaultMetric,
        scope: scopeNumber(scope),
        type: routeTypeNumber(type),
        protocol: routeProtocolNumber(protocol),
        ...(mtu ? { mtu } : {}),
      })
      for (const [id, spec] of given) {
        if (Bun.deepEquals(wanted.get(id), spec)) continue
        log.info('removing route', { destination: spec.dst || 'default', gateway: spec.gateway })
        if (!spec.outLinkName || links.get(spec.outLinkName)) network.removeRoute(change(spec))
        given.delete(id)
      }
      const present = network.routes()
      for (const [id, spec] of wanted) {
        if (spec.outLinkName && !links.get(spec.outLinkName)) continue // the link's coming wakes us
        const wish = change(spec)
        const there = present.some(
          (route) =>
            route.family === wish.family &&
            (route.destination ?? '') === spec.dst &&
            (route.gateway ?? '') === spec.gateway &&
            route.table === wish.table &&
            route.priority === wish.priority &&
            (wish.link === undefined || route.link === wish.link),
        )
        if (!there) {
          log.info('adding route', { destination: spec.dst || 'default', gateway: spec.gateway, link: spec.outLinkName })
          network.putRoute(wish)
        }
        given.set(id, spec)
      }
    },
  })
}

function routeSpec(linkName: string, { network = '', gateway = '', source = '', metric, mtu }: Record<string, any>): Spec {
  const dst = network === '0.0.0.0/0' || network === '::/0' ? '' : network
  return {
    family: `${gateway}${network}`.includes(':') ? 'inet6' : 'inet4',
    dst,
    src: source,
    gateway,
    outLinkName: linkName,
    table: 'main',
    priority: metric ?? defaultMetric,
    scope: gateway ? 'global' : 'link',
    type: 'unicast',
    flags: '',
    protocol: 'static',
    layer: 'configuration',
    ...(mtu ? { mtu } : {}),
  }
}
