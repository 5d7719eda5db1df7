import { type Controller, defineController, shared, strong, weak } from '../../../../cosi/controller.ts'
import { merge } from '../../../../cosi/merge.ts'
import type { SpecOf } from '../../../../cosi/resource.ts'
import { MachineConfig } from '../../../config/resources/machine-config.ts'
import type { Kernel } from '../../../kernel.ts'
import { DevicesStatus } from '../../../runtime/resources/devices-status.ts'
import { type BootNetwork, silentBoot } from '../../boot-network.ts'
import { linkSpecs } from '../../declared-specs.ts'
import { onChange } from '../../kernel-events.ts'
import { configuredLinks } from '../../link/configured.ts'
import { physicalLinks } from '../../link/names.ts'
import { LinkReconciler } from '../../link/reconciler.ts'
import { justHeard } from '../../link/wireguard.ts'
import { DeviceConfigSpec } from '../../resources/device-config-spec.ts'
import { LinkSpec, LinkStatus } from '../../resources/link.ts'
import { LinkRefresh } from '../../resources/link-refresh.ts'

/** Declares the links of the configuration and the command line. The loopback is up and, on a machine, so are its physical links. */
export const configLinks = ({ mode }: Pick<Kernel, 'mode'>, boot: BootNetwork = silentBoot): Controller =>
  defineController({
    name: 'network.LinkConfigController',
    effects: 'none',
    inputs: { config: weak(MachineConfig, { id: 'v1alpha1' }), devices: weak(DeviceConfigSpec), links: weak(LinkStatus) },
    outputs: { spec: shared(LinkSpec, 'network-config') },
    reconcile({ config, devices, links, spec }) {
      const present = links.list()
      const indexOf = (name: string) => links.get(name)?.spec.index
      const plain = { logical: false, up: true, mtu: 0, kind: '', type: 'ether', layer: 'default' } as const
      spec.put('default/lo', { ...plain, name: 'lo', type: 'loopback' })
      if (mode === 'metal') for (const name of physicalLinks(present, boot)) spec.put(`default/${name}`, { ...plain, name })
      for (const [name, desired] of linkSpecs(boot.links(present), 'cmdline', indexOf)) spec.put(`cmdline/${name}`, desired)
      const configured = configuredLinks({ config, devices, links }, boot)
      for (const [name, desired] of linkSpecs(configured, 'configuration', indexOf)) spec.put(`configuration/${name}`, desired)
    },
  })

/** Merges the layers into one spec per link, field by field: a field unset in a stronger layer comes from a weaker one. */
export const mergeLinks: Controller = merge(
  'LinkMergeControllers.net.talos.dev',
  LinkSpec,
  (layered) => {
    let desired: Record<string, unknown> = {}
    for (const { spec } of layered) {
      const set = Object.entries(spec).filter(([, value]) => value !== undefined && value !== '' && value !== 0)
      const logical = desired.logical === true || spec.logical
      // Only the layer that creates the link knows its type.
      const type = desired.logical === true && !spec.logical ? { type: desired.type } : {}
      desired = { ...desired, ...Object.fromEntries(set), logical, ...type }
    }
    return { mtu: 0, kind: '', ...desired } as SpecOf<typeof LinkSpec>
  },
  { id: ({ spec }) => spec.name },
)

/** Creates and configures desired links. Links without a spec are never touched. */
export const applyLinks = ({ mode, net, wireguard }: Pick<Kernel, 'mode' | 'net' | 'wireguard'>): Controller => {
  const reconciler = new LinkReconciler(wireguard)
  return defineController({
    name: 'network.LinkSpecController',
    inputs: { specs: strong(LinkSpec), settled: weak(DevicesStatus) },
    outputs: { refresh: shared(LinkRefresh) },
    start: onChange(net, ['links']),
    reconcile({ specs, settled, refresh, log, wakeIn }) {
      // udevd assigns persistent names, which it cannot do once a link is up.
      if (mode === 'metal' && !settled.get('devices')?.spec.ready) return
      using network = net.openNetwork()
      const again = reconciler.converge(
        network,
        specs.list().map(({ spec }) => spec),
        log,
      )
      if (again) wakeIn(justHeard * 1000)
      if (reconciler.quietChanges > 0) refresh.put('wireguard', { generation: reconciler.quietChanges })
    },
  })
}
