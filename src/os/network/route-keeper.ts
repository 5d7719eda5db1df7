import type { Logger } from '../../cosi/log.ts'
import type { SpecOf } from '../../cosi/resource.ts'
import type { Network, Route, RouteChange } from '../../linux/net/rtnetlink.ts'
import { familyNumber, routeProtocolName, routeProtocolNumber, routeTableNumber, routeTypeNumber, scopeNumber } from './kernel-names.ts'
import type { RouteSpec } from './resources/route.ts'
import { defaultMetric, routeId } from './wishes.ts'

type Spec = SpecOf<typeof RouteSpec>
type Door = Pick<Network, 'links' | 'routes' | 'addRoute' | 'appendRoute' | 'putRoute' | 'removeRoute'>

/** Errors for a route whose link or gateway is not usable yet. The event that makes it usable triggers a reconcile. */
const notYet = ['ENETUNREACH', 'ENETDOWN', 'EHOSTUNREACH', 'ENODEV', 'EINVAL']

/** Reconciles routes with their specs. It records the routes it added, so that only these are replaced or removed. */
export class RouteKeeper {
  readonly #given = new Map<string, RouteChange>()

  /** Runs one pass. Returns how many routes wait for their link or gateway. Throws when a route is rejected permanently. */
  converge(network: Door, wishes: readonly Spec[], log: Logger): number {
    const links = new Map(network.links().map((link) => [link.name, link]))
    const wanted = new Map(wishes.map((spec) => [routeId(spec), spec]))
    const failures: string[] = []
    const told = ({ dst, gateway, outLinkName }: Spec) => ({
      destination: dst || 'default',
      gateway: gateway || undefined,
      link: outLinkName,
    })
    let present = byTarget(network.routes())
    let removed = false
    for (const [id, route] of this.#given) {
      if (wanted.has(id)) continue
      if (present.get(target(route))?.some((other) => same(route, other))) {
        log.info('removing route', { destination: route.destination ?? 'default', gateway: route.gateway })
        network.removeRoute(route)
        removed = true
      }
      this.#given.delete(id)
    }
    if (removed) present = byTarget(network.routes()) // listing thousands of routes is expensive
    let waiting = 0
    // Directly connected networks first: a gateway must be reachable before a route through it is added.
    for (const [id, spec] of [...wanted].sort(([, a], [, b]) => Number(a.gateway !== '') - Number(b.gateway !== ''))) {
      const link = spec.outLinkName ? links.get(spec.outLinkName) : undefined
      if (spec.outLinkName && !link) continue // the link's creation triggers a reconcile
      const wish = change(spec, link?.index)
      const rivals = present.get(target(wish)) ?? []
      const there = rivals.find((route) => same(wish, route))
      if (there && !differs(wish, there)) continue
      if (there && !this.#given.has(id)) continue // another program's route, equal but for minor attributes
      // A second route to the same destination with the same metric: the first is used, the others stand by.
      const rival = there || wish.family !== 2 ? undefined : rivals[0]
      if (rival && ![...this.#given.values()].some((route) => same(route, rival))) {
        failures.push(
          `add route to ${spec.dst || 'default'}: protocol "${routeProtocolName(rival.protocol)}" has one of metric ${rival.priority} already: give yours another metric`,
        )
        continue
      }
      try {
        if (there) network.putRoute(wish)
        else if (rival) network.appendRoute(wish)
        else network.addRoute(wish)
        log.info(there ? 'changing route' : 'adding route', told(spec))
        this.#given.set(id, wish)
        if (!there) present.set(target(wish), [...rivals, { ...wish, flags: 0, hops: [] } as unknown as Route])
      } catch (error) {
        const code = error instanceof Error && 'code' in error ? String(error.code) : ''
        if (!notYet.includes(code)) failures.push(error instanceof Error ? error.message : String(error))
        else {
          log.debug('route waits for its link', { ...told(spec), reason: code })
          waiting++
        }
      }
    }
    if (failures.length > 0) throw new Error(failures.join('; '))
    return waiting
  }
}

function change({ dst, src, gateway, table, priority, scope, type, protocol, mtu, family }: Spec, link: number | undefined): RouteChange {
  return {
    family: familyNumber(family),
    ...(dst ? { destination: dst } : {}),
    ...(src ? { preferredSource: src } : {}),
    ...(gateway ? { gateway } : {}),
    ...(link === undefined ? {} : { link }),
    table: routeTableNumber(table),
    priority: priority ?? defaultMetric,
    scope: scopeNumber(scope),
    type: routeTypeNumber(type),
    protocol: routeProtocolNumber(protocol),
    ...(mtu ? { mtu } : {}),
  }
}

const target = (route: RouteChange) => `${route.family} ${route.destination ?? ''} ${route.table} ${route.priority}`

function byTarget(routes: readonly Route[]): Map<string, Route[]> {
  const found = new Map<string, Route[]>()
  for (const route of routes) {
    const there = found.get(target(route))
    if (there) there.push(route)
    else found.set(target(route), [route])
  }
  return found
}

/** Same destination, gateway and type. */
function same(wish: RouteChange, route: Route | RouteChange): boolean {
  if (target(wish) !== target(route) || (wish.gateway ?? '') !== (route.gateway ?? '') || wish.type !== route.type) return false
  return wish.link === undefined || wish.link === route.link
}

const differs = (wish: RouteChange, route: Route) =>
  (wish.mtu ?? undefined) !== (route.mtu ?? undefined) ||
  (wish.preferredSource !== undefined && wish.preferredSource !== route.preferredSource) ||
  wish.protocol !== route.protocol
