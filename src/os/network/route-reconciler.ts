import type { Logger } from '../../cosi/log.ts'
import type { SpecOf } from '../../cosi/resource.ts'
import type { Network, Route } from '../../linux/net/rtnetlink.ts'
import { errnoOf, failedWith } from '../../wire/errno.ts'
import { messageOf } from '../../wire/error-message.ts'
import { defaultMetric, routeId } from './declared-specs.ts'
import { familyNumber, routeProtocolName, routeProtocolNumber, routeTableNumber, routeTypeNumber, scopeNumber } from './kernel-names.ts'
import type { RouteSpec } from './resources/route.ts'

type Spec = SpecOf<typeof RouteSpec>
/** What is compared of a route, desired or present. */
type Compared = Omit<Route, 'flags' | 'hops'>
type Netlink = Pick<Network, 'links' | 'routes' | 'addRoute' | 'appendRoute' | 'putRoute' | 'removeRoute'>

/** Errors for a route whose link or gateway is not usable yet. The event that makes it usable triggers a reconcile. */
const notYet = ['ENETUNREACH', 'ENETDOWN', 'EHOSTUNREACH', 'ENODEV', 'EINVAL']

/** Reconciles routes with their specs. It records the routes it added, so that only these are replaced or removed. */
export class RouteReconciler {
  readonly #added = new Map<string, Compared>()

  /** Runs one pass. Returns how many routes wait for their link or gateway. Throws when a route is rejected permanently. */
  converge(network: Netlink, specs: readonly Spec[], log: Logger): number {
    const links = new Map(network.links().map((link) => [link.name, link]))
    const specsById = new Map(specs.map((spec) => [routeId(spec), spec]))
    const failures: string[] = []
    const fieldsOf = ({ dst, gateway, outLinkName }: Spec) => ({
      destination: dst || 'default',
      gateway: gateway || undefined,
      link: outLinkName,
    })
    let present = byTarget(network.routes())
    let removed = false
    for (const [id, route] of this.#added) {
      if (specsById.has(id)) continue
      if (present.get(target(route))?.some((other) => same(route, other))) {
        log.info('removing route', { destination: route.destination ?? 'default', gateway: route.gateway })
        network.removeRoute(route)
        removed = true
      }
      this.#added.delete(id)
    }
    if (removed) present = byTarget(network.routes()) // listing thousands of routes is expensive
    let waiting = 0
    // Directly connected networks first: a gateway must be reachable before a route through it is added.
    for (const [id, spec] of [...specsById].sort(([, a], [, b]) => Number(a.gateway !== '') - Number(b.gateway !== ''))) {
      const link = spec.outLinkName ? links.get(spec.outLinkName) : undefined
      if (spec.outLinkName && !link) continue // the link's creation triggers a reconcile
      const desired = change(spec, link?.index)
      const rivals = present.get(target(desired)) ?? []
      const there = rivals.find((route) => same(desired, route))
      if (there && !differs(desired, there)) continue
      if (there && !this.#added.has(id)) continue // another program's route, equal but for minor attributes
      // A second route to the same destination with the same metric: the first is used, the others stand by.
      const rival = there || desired.family !== 2 ? undefined : rivals[0]
      if (rival && ![...this.#added.values()].some((route) => same(route, rival))) {
        failures.push(
          `add route to ${spec.dst || 'default'}: protocol "${routeProtocolName(rival.protocol)}" has one of metric ${rival.priority} already: give yours another metric`,
        )
        continue
      }
      try {
        if (there) network.putRoute(desired)
        else if (rival) network.appendRoute(desired)
        else network.addRoute(desired)
        log.info(there ? 'changing route' : 'adding route', fieldsOf(spec))
        this.#added.set(id, desired)
        if (!there) present.set(target(desired), [...rivals, desired])
      } catch (error) {
        if (failedWith(error, ...notYet)) {
          log.debug('route waits for its link', { ...fieldsOf(spec), reason: errnoOf(error) })
          waiting++
        } else failures.push(messageOf(error))
      }
    }
    if (failures.length > 0) throw new Error(failures.join('; '))
    return waiting
  }
}

function change({ dst, src, gateway, table, priority, scope, type, protocol, mtu, family }: Spec, link: number | undefined): Compared {
  return {
    family: familyNumber(family),
    ...(dst && { destination: dst }),
    ...(src && { preferredSource: src }),
    ...(gateway && { gateway }),
    ...(link !== undefined && { link }),
    table: routeTableNumber(table),
    priority: priority ?? defaultMetric,
    scope: scopeNumber(scope),
    type: routeTypeNumber(type),
    protocol: routeProtocolNumber(protocol),
    ...(mtu && { mtu }),
  }
}

const target = (route: Compared) => `${route.family} ${route.destination ?? ''} ${route.table} ${route.priority}`

/** Routes by destination, table and metric: those of the kernel, and those that were added after they were listed. */
function byTarget(routes: readonly Compared[]): Map<string, Compared[]> {
  const found = new Map<string, Compared[]>()
  for (const route of routes) {
    const there = found.get(target(route))
    if (there) there.push(route)
    else found.set(target(route), [route])
  }
  return found
}

/** Same destination, gateway and type. */
function same(desired: Compared, route: Compared): boolean {
  if (target(desired) !== target(route) || (desired.gateway ?? '') !== (route.gateway ?? '') || desired.type !== route.type) return false
  return desired.link === undefined || desired.link === route.link
}

const differs = (desired: Compared, route: Compared) =>
  (desired.mtu ?? undefined) !== (route.mtu ?? undefined) ||
  (desired.preferredSource !== undefined && desired.preferredSource !== route.preferredSource) ||
  desired.protocol !== route.protocol
