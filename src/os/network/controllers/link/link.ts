import { type Controller, defineController, shared, strong, weak } from '../../../../cosi/controller.ts'
import { merge } from '../../../../cosi/merge.ts'
import type { SpecOf } from '../../../../cosi/resource.ts'
import { MachineConfig } from '../../../config/resources/machine-config.ts'
import type { Kernel } from '../../../kernel.ts'
import { DevicesStatus } from '../../../runtime/resources/devices-status.ts'
import { type BootNetwork, silentBoot } from '../../boot-network.ts'
import { onChange } from '../../kernel-events.ts'
import { configuredLinks } from '../../link/configured.ts'
import { LinkKeeper } from '../../link/keeper.ts'
import { cards } from '../../link/names.ts'
import { justHeard } from '../../link/wireguard.ts'
import { DeviceConfigSpec } from '../../resources/device-config-spec.ts'
import { LinkSpec, LinkStatus } from '../../resources/link.ts'
import { LinkRefresh } from '../../resources/link-refresh.ts'
import { linkWishes } from '../../wishes.ts'

/** Declares the links of the configuration and the command line. The loopback is up and, on a machine, so are its physical links. */
export const configLinks = ({ mode }: Pick<Kernel, 'mode'>, boot: BootNetwork = silentBoot): Controller =>
  defineController({
    name: 'network.LinkConfigController',
    inputs: { config: weak(MachineConfig, { id: 'v1alpha1' }), devices: weak(DeviceConfigSpec), links: weak(LinkStatus) },
    outputs: { spec: shared(LinkSpec, 'network-config') },
    reconcile({ config, devices, links, spec }) {
      const present = links.list()
      const indexOf = (name: string) => links.get(name)?.spec.index
      const plain = { logical: false, up: true, mtu: 0, kind: '', type: 'ether', layer: 'default' } as const
      spec.put('default/lo', { ...plain, name: 'lo', type: 'loopback' })
      if (mode === 'metal') for (const name of cards(present, boot)) spec.put(`default/${name}`, { ...plain, name })
      for (const [name, wish] of linkWishes(boot.links(present), 'cmdline', indexOf)) spec.put(`cmdline/${name}`, wish)
      const configured = configuredLinks({ config, devices, links }, boot)
      for (const [name, wish] of linkWishes(configured, 'configuration', indexOf)) spec.put(`configuration/${name}`, wish)
    },
  })

/** Merges the layers into one spec per link, field by field: a field unset in a stronger layer comes from a weaker one. */
export const mergeLinks: Controller = merge(
  'LinkMergeControllers.net.talos.dev',
  LinkSpec,
  (layered) => {
    let wish: Record<string, unknown> = {}
    for (const { spec } of layered) {
      const said = Object.entries(spec).filter(([, value]) => value !== undefined && value !== '' && value !== 0)
      const logical = wish.logical === true || spec.logical
      // Only the layer that creates the link knows its type.
      const type = wish.logical === true && !spec.logical ? { type: wish.type } : {}
      wish = { ...wish, ...Object.fromEntries(said), logical, ...type }
    }
    return { mtu: 0, kind: '', ...wish } as SpecOf<typeof LinkSpec>
  },
  { id: ({ spec }) => spec.name },
)

/** Creates and configures desired links. Links without a spec are never touched. */
export const applyLinks = ({ mode, net, wireguard }: Pick<Kernel, 'mode' | 'net' | 'wireguard'>): Controller => {
  const keeper = new LinkKeeper(wireguard)
  return defineController({
    name: 'network.LinkSpecController',
    inputs: { specs: strong(LinkSpec), settled: weak(DevicesStatus) },
    outputs: { refresh: shared(LinkRefresh) },
    start: onChange(net, ['links']),
    reconcile({ specs, settled, refresh, log, wakeIn }) {
      // udevd assigns persistent names, which it cannot do once a link is up.
      if (mode === 'metal' && !settled.get('devices')?.spec.ready) return
      using network = net.openNetwork()
      const again = keeper.converge(
        network,
        specs.list().map(({ spec }) => spec),
        log,
      )
      if (again) wakeIn(justHeard * 1000)
      if (keeper.quietChanges > 0) refresh.put('wireguard', { generation: keeper.quietChanges })
    },
  })
}
