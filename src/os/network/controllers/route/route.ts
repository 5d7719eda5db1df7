import { type Controller, defineController, shared, strong, weak } from '../../../../cosi/controller.ts'
import { merge, strongest } from '../../../../cosi/merge.ts'
import type { SpecOf } from '../../../../cosi/resource.ts'
import { familyOf } from '../../../../wire/prefix.ts'
import { declared, findAll } from '../../../config/public.ts'
import { MachineConfig } from '../../../config/resources/machine-config.ts'
import type { Kernel } from '../../../kernel.ts'
import { type BootNetwork, silentBoot } from '../../boot-network.ts'
import { defaultMetric, routeId, routeSpecs } from '../../declared-specs.ts'
import { BlackholeRouteConfig } from '../../documents/routing.ts'
import { onChange } from '../../kernel-events.ts'
import { canonicalDestination } from '../../link/canonical.ts'
import { configuredLinks } from '../../link/configured.ts'
import { DeviceConfigSpec } from '../../resources/device-config-spec.ts'
import { LinkStatus } from '../../resources/link.ts'
import { RouteSpec } from '../../resources/route.ts'
import { RouteReconciler } from '../../route-reconciler.ts'

/** Declares the routes of the configuration and the command line. */
export const configRoutes = (boot: BootNetwork = silentBoot): Controller =>
  defineController({
    name: 'network.RouteConfigController',
    effects: 'none',
    inputs: { config: weak(MachineConfig, { id: 'v1alpha1' }), devices: weak(DeviceConfigSpec), links: weak(LinkStatus) },
    outputs: { spec: shared(RouteSpec, 'network-config') },
    reconcile({ config, devices, links, spec }) {
      for (const [id, desired] of routeSpecs(boot.links(links.list()), 'cmdline', 'boot')) spec.put(`cmdline/${id}`, desired)
      for (const [id, desired] of routeSpecs(configuredLinks({ config, devices, links }, boot), 'configuration'))
        spec.put(`configuration/${id}`, desired)
      for (const document of findAll(declared(config.get('v1alpha1')), BlackholeRouteConfig)) {
        const desired = blackhole(canonicalDestination(document.name ?? ''), document.metric)
        spec.put(`configuration/${routeId(desired)}`, desired)
      }
    },
  })

function blackhole(dst: string, metric: number = defaultMetric): SpecOf<typeof RouteSpec> {
  const family = familyOf(dst)
  const plain = { family, dst, src: '', gateway: '', table: 'main', priority: metric, scope: 'global', flags: '', protocol: 'static' }
  return { ...plain, type: 'blackhole', layer: 'configuration' }
}

/** Merges the layers into one spec per route. */
export const mergeRoutes: Controller = merge('RouteMergeControllers.net.talos.dev', RouteSpec, strongest, {
  id: ({ spec }) => routeId(spec),
})

/** Applies desired routes to the kernel. */
export const applyRoutes = ({ net }: Pick<Kernel, 'net'>): Controller => {
  const reconciler = new RouteReconciler()
  return defineController({
    name: 'network.RouteSpecController',
    inputs: { specs: strong(RouteSpec) },
    outputs: {},
    start: onChange(net, ['routes', 'addresses', 'links']),
    reconcile({ specs, log, wakeIn }) {
      using network = net.openNetwork()
      const waiting = reconciler.converge(
        network,
        specs.list().map(({ spec }) => spec),
        log,
      )
      if (waiting > 0) wakeIn(1000)
    },
  })
}
