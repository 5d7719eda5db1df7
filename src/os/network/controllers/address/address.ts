import { type Controller, defineController, shared, strong, weak } from '../../../../cosi/controller.ts'
import { merge, strongest } from '../../../../cosi/merge.ts'
import { messageOf } from '../../../../wire/error-message.ts'
import { addressOnly } from '../../../../wire/prefix.ts'
import { MachineConfig } from '../../../config/resources/machine-config.ts'
import type { Kernel } from '../../../kernel.ts'
import { type BootNetwork, silentBoot } from '../../boot-network.ts'
import { addressSpecs } from '../../declared-specs.ts'
import { onChange } from '../../kernel-events.ts'
import { addressFlagNumber, scopeNumber } from '../../kernel-names.ts'
import { configuredLinks } from '../../link/configured.ts'
import { AddressSpec } from '../../resources/address.ts'
import { DeviceConfigSpec } from '../../resources/device-config-spec.ts'
import { LinkStatus } from '../../resources/link.ts'

/** Declares the addresses of the configuration and the command line, and the loopback address. */
export const configAddresses = (boot: BootNetwork = silentBoot): Controller =>
  defineController({
    name: 'network.AddressConfigController',
    effects: 'none',
    inputs: { config: weak(MachineConfig, { id: 'v1alpha1' }), devices: weak(DeviceConfigSpec), links: weak(LinkStatus) },
    outputs: { spec: shared(AddressSpec, 'network-config') },
    reconcile({ config, devices, links, spec }) {
      const own = { address: '127.0.0.1/8', linkName: 'lo', family: 'inet4', scope: 'host', flags: 'permanent' }
      spec.put('default/lo/127.0.0.1/8', { ...own, layer: 'default' })
      for (const [id, desired] of addressSpecs(boot.links(links.list()), 'cmdline')) spec.put(`cmdline/${id}`, desired)
      for (const [id, desired] of addressSpecs(configuredLinks({ config, devices, links }, boot), 'configuration'))
        spec.put(`configuration/${id}`, desired)
    },
  })

/** Merges the layers into one spec per link and address. */
export const mergeAddresses: Controller = merge('AddressMergeControllers.net.talos.dev', AddressSpec, strongest, {
  id: ({ spec }) => `${spec.linkName}/${spec.address}`,
})

const dadFailed = addressFlagNumber('dadfailed') // duplicate address detection found another station with this address
const tentative = addressFlagNumber('tentative') // duplicate address detection is running
/** Retry interval for an address that another station holds, in milliseconds. */
const retryInterval = { first: 5000, longest: 300_000 }

const permanent = 128 // IFA_F_PERMANENT: set by the kernel for addresses without a lifetime

/** Adds desired addresses to their links and removes those this controller added earlier. Addresses added by others are left alone. */
export const applyAddresses = ({ net, packet }: Pick<Kernel, 'net' | 'packet'>): Controller => {
  const added = new Map<string, { address: string; linkName: string }>()
  /** Addresses held by another station: time of the next retry, and the delay before it. */
  const taken = new Map<string, { at: number; delay: number }>()
  return defineController({
    name: 'network.AddressSpecController',
    inputs: { specs: strong(AddressSpec), links: weak(LinkStatus) },
    outputs: {},
    start: onChange(net, ['addresses', 'links']),
    reconcile({ specs, log, wakeIn }) {
      using network = net.openNetwork()
      const links = new Map(network.links().map((link) => [link.name, link]))
      const present = new Map(network.addresses().map((address) => [`${address.link} ${address.address}`, address]))
      const desired = new Map(specs.list().map(({ metadata, spec }) => [metadata.id, spec]))
      const failures: string[] = []
      for (const [id, { address, linkName }] of added) {
        if (desired.has(id)) continue
        const link = links.get(linkName)?.index
        if (link !== undefined && present.has(`${link} ${address}`)) {
          log.info('removing address', { link: linkName, address })
          network.removeAddress({ link, address })
        }
        added.delete(id)
      }
      for (const id of taken.keys()) if (!desired.has(id)) taken.delete(id)
      for (const [id, { address, linkName, scope, priority = 0, flags, announceWithARP }] of desired) {
        const link = links.get(linkName)
        if (link === undefined) continue // the link's creation triggers a reconcile
        let there = present.get(`${link.index} ${address}`)
        if (there && (there.flags & dadFailed) !== 0) {
          const known = taken.get(id)
          const now = performance.now()
          if (!known) log.warn('duplicate address detected, will retry', { link: linkName, address })
          if (!known || now < known.at) {
            const wait = known ?? { at: now + retryInterval.first, delay: retryInterval.first }
            taken.set(id, wait)
            wakeIn(wait.at - now)
            continue
          }
          const delay = Math.min(known.delay * 2, retryInterval.longest)
          taken.set(id, { at: now + delay, delay })
          network.removeAddress({ link: link.index, address })
          there = undefined
        } else if (there && (there.flags & tentative) === 0 && taken.delete(id))
          log.info('duplicate address resolved', { link: linkName, address })
        if (there && (priority === 0 || there.priority === priority)) continue
        log.info(there ? 'changing address' : 'adding address', { link: linkName, address })
        try {
          network.addAddress({
            link: link.index,
            address,
            scope: scopeNumber(scope),
            flags: addressFlagNumber(flags) & ~permanent,
            ...(priority && { priority }),
          })
          if (!there) added.set(id, { address, linkName })
          if (announceWithARP) packet.announce(link, addressOnly(address))
        } catch (error) {
          failures.push(messageOf(error))
        }
      }
      if (failures.length > 0) throw new Error(failures.join('; '))
    },
  })
}
