import { type Controller, defineController, exclusive, shared, weak } from '../../../../cosi/controller.ts'
import type { SpecOf } from '../../../../cosi/resource.ts'
import type { Ethernet, EthernetChange } from '../../../../linux/net/ethtool.ts'
import { messageOf } from '../../../../wire/error-message.ts'
import { declared, findAll } from '../../../config/public.ts'
import { MachineConfig } from '../../../config/resources/machine-config.ts'
import type { Kernel } from '../../../kernel.ts'
import { DevicesStatus } from '../../../runtime/resources/devices-status.ts'
import { EthernetConfig } from '../../documents/ethernet.ts'
import { onChange } from '../../kernel-events.ts'
import { changeOf, statusOf } from '../../link/ethernet.ts'
import { linkNames } from '../../link/names.ts'
import { EthernetSpec, EthernetStatus } from '../../resources/ethernet.ts'
import { LinkStatus } from '../../resources/link.ts'

type EthernetKernel = Pick<Kernel, 'mode' | 'net' | 'ethtool'>

/** Declares the settings of EthernetConfig documents. */
export const configEthernet: Controller = defineController({
  name: 'network.EthernetConfigController',
  effects: 'none',
  inputs: { config: weak(MachineConfig, { id: 'v1alpha1' }), links: weak(LinkStatus) },
  outputs: { spec: shared(EthernetSpec) },
  reconcile({ config, links, spec }) {
    const resolve = linkNames(links.list())
    for (const document of findAll(declared(config.get('v1alpha1')), EthernetConfig)) {
      if (!document.name) continue
      const { rings, features, channels, wakeOnLan } = document
      const settings = { rings, features, channels, wakeOnLan } satisfies SpecOf<typeof EthernetSpec>
      spec.put(resolve(document.name), Object.fromEntries(Object.entries(settings).filter(([, value]) => value !== undefined)))
    }
  },
})

/** Applies desired settings to network interfaces, sending only the differences. */
export const applyEthernet = ({ mode, net, ethtool }: EthernetKernel): Controller => {
  // A permanent failure is logged once, not at every change of any link.
  const reported = new Map<string, string>()
  return defineController({
    name: 'network.EthernetSpecController',
    inputs: { specs: weak(EthernetSpec), settled: weak(DevicesStatus, { id: 'devices' }) },
    outputs: {},
    start: onChange(net, ['links']),
    reconcile({ specs, settled, log }) {
      if (mode === 'metal' && !settled.get('devices')?.spec.ready) return
      const desired = specs.list()
      for (const name of reported.keys()) if (!desired.some(({ metadata }) => metadata.id === name)) reported.delete(name)
      if (desired.length === 0) return
      using network = net.openNetwork()
      using ethernet = ethtool.openEthernet()
      for (const { metadata, spec } of desired) {
        const link = network.link(metadata.id)
        const present = link && ethernet.read(link.index)
        if (!link || !present) continue // the link's creation triggers a reconcile
        const problems: string[] = []
        for (const [what, change] of matters(spec, present, problems)) {
          try {
            ethernet.change(link.index, change)
            log.info('changing ethernet settings', { link: metadata.id, [what]: JSON.stringify(change[what]) })
          } catch (error) {
            problems.push(messageOf(error))
          }
        }
        const problem = problems.join('; ')
        if (problem && reported.get(metadata.id) !== problem)
          log.error('apply ethernet settings failed', { link: metadata.id, error: problem })
        reported.set(metadata.id, problem)
      }
    },
  })
}

/** Each setting on its own, so that one the driver rejects does not block the others. */
function matters(spec: SpecOf<typeof EthernetSpec>, present: Ethernet, problems: string[]): [keyof EthernetChange, EthernetChange][] {
  const change = changeOf(spec, present, problems)
  return (Object.keys(change) as (keyof EthernetChange)[]).map((what) => [what, { [what]: change[what] }])
}

/** Publishes the state of network interfaces, and of virtual links with an Ethernet header. */
export const observeEthernet = ({ net, ethtool }: Pick<EthernetKernel, 'net' | 'ethtool'>): Controller =>
  defineController({
    name: 'network.EthernetStatusController',
    inputs: { specs: weak(EthernetSpec) },
    outputs: { status: exclusive(EthernetStatus) },
    start: onChange(net, ['links']),
    reconcile({ status }) {
      using network = net.openNetwork()
      using ethernet = ethtool.openEthernet()
      for (const link of network.links()) {
        if (link.type !== 1) continue // ARPHRD_ETHER
        const present = ethernet.read(link.index)
        if (present) status.put(link.name, statusOf(present))
      }
    },
  })
