import { type Controller, defineController, shared, strong, weak } from '../../../cosi/controller.ts'
import { merge, strongest } from '../../../cosi/merge.ts'
import { MachineConfig } from '../../config/resources/machine-config.ts'
import type { Kernel } from '../../kernel.ts'
import { type BootNetwork, silentBoot } from '../boot-network.ts'
import { configuredLinks } from '../configured-links.ts'
import { onChange } from '../kernel-events.ts'
import { addressFlagNumber, scopeNumber } from '../kernel-names.ts'
import { AddressSpec } from '../resources/address-spec.ts'
import { DeviceConfigSpec } from '../resources/device-config-spec.ts'
import { LinkStatus } from '../resources/link-status.ts'
import { addressWishes } from '../wishes.ts'

/** The addresses that the configuration and the command line give to links, and the loopback's own. */
export const configAddresses = (boot: BootNetwork = silentBoot): Controller =>
  defineController({
    name: 'network.AddressConfigController',
    inputs: { config: weak(MachineConfig, { id: 'v1alpha1' }), devices: weak(DeviceConfigSpec), links: weak(LinkStatus) },
    outputs: { spec: shared(AddressSpec, 'network-config') },
    reconcile({ config, devices, links, spec }) {
      const own = { address: '127.0.0.1/8', linkName: 'lo', family: 'inet4', scope: 'host', flags: 'permanent' }
      spec.put('default/lo/127.0.0.1/8', { ...own, layer: 'default' })
      for (const [id, wish] of addressWishes(boot.links(links.list()), 'cmdline')) spec.put(`cmdline/${id}`, wish)
      for (const [id, wish] of addressWishes(configuredLinks({ config, devices, links }, boot), 'configuration'))
        spec.put(`configuration/${id}`, wish)
    },
  })

/** One wish for each link and address, whoever utters it. */
export const mergeAddresses: Controller = merge('AddressMergeControllers.net.talos.dev', AddressSpec, strongest, {
  id: ({ spec }) => `${spec.linkName}/${spec.address}`,
})

const permanent = 128 // IFA_F_PERMANENT: the kernel's own, for an address without an end

/** Gives links their addresses; what we gave and nobody wishes any more is taken away, what others gave never is. */
export const applyAddresses = ({ net, packet }: Pick<Kernel, 'net' | 'packet'>): Controller => {
  const given = new Map<string, { address: string; linkName: string }>()
  return defineController({
    name: 'network.AddressSpecController',
    inputs: { specs: strong(AddressSpec), links: weak(LinkStatus) },
    outputs: {},
    start: onChange(net, ['addresses', 'links']),
    reconcile({ specs, log }) {
      using network = net.openNetwork()
      const links = new Map(network.links().map((link) => [link.name, link]))
      const present = new Map(network.addresses().map((address) => [`${address.link} ${address.address}`, address]))
      const wanted = new Map(specs.list().map(({ metadata, spec }) => [metadata.id, spec]))
      const failures: string[] = []
      for (const [id, { address, linkName }] of given) {
        if (wanted.has(id)) continue
        const link = links.get(linkName)?.index
        if (link !== undefined && present.has(`${link} ${address}`)) {
          log.info('removing address', { link: linkName, address })
          network.removeAddress({ link, address })
        }
        given.delete(id)
      }
      for (const [id, { address, linkName, scope, priority = 0, flags, announceWithARP }] of wanted) {
        const link = links.get(linkName)
        if (link === undefined) continue // the link's coming wakes us
        const there = present.get(`${link.index} ${address}`)
        if (there && (priority === 0 || there.priority === priority)) continue
        log.info(there ? 'changing address' : 'adding address', { link: linkName, address })
        try {
          network.addAddress({
            link: link.index,
            address,
            scope: scopeNumber(scope),
            flags: addressFlagNumber(flags) & ~permanent,
            ...(priority ? { priority } : {}),
          })
          if (!there) given.set(id, { address, linkName })
          if (announceWithARP) packet.announce(link, address.split('/')[0]!)
        } catch (error) {
          failures.push(error instanceof Error ? error.message : String(error))
        }
      }
      if (failures.length > 0) throw new Error(failures.join('; '))
    },
  })
}
