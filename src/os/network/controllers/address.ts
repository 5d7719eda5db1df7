import { type Controller, defineController, shared, strong, weak } from '../../../cosi/controller.ts'
import { merge, strongest } from '../../../cosi/merge.ts'
import { declared } from '../../config/declared.ts'
import { MachineConfig } from '../../config/resources/machine-config.ts'
import type { Kernel } from '../../kernel.ts'
import { scopeNumber } from '../kernel-names.ts'
import { AddressSpec } from '../resources/address-spec.ts'
import { LinkStatus } from '../resources/link-status.ts'

/** The addresses the machine configuration gives to links, and the loopback's own. */
export const configAddresses: Controller = defineController({
  name: 'network.AddressConfigController',
  inputs: { config: weak(MachineConfig, { id: 'v1alpha1' }) },
  outputs: { spec: shared(AddressSpec, 'network-config') },
  reconcile({ config, spec }) {
    spec.put('default/lo/127.0.0.1/8', addressSpec('lo', '127.0.0.1/8', 'host', 'default'))
    const found = declared(config.get('v1alpha1'))
    for (const { interface: name, addresses = [] } of found?.machine.network?.interfaces ?? [])
      for (const address of name ? addresses : [])
        spec.put(`configuration/${name}/${address}`, addressSpec(name, withLength(address), 'global', 'configuration'))
    for (const document of found?.documents ?? [])
      if (document.kind === 'LinkConfig')
        for (const { address } of document.addresses ?? [])
          spec.put(`configuration/${document.name}/${address}`, addressSpec(document.name, withLength(address), 'global', 'configuration'))
  },
})

/** One wish for each link and address. */
export const mergeAddresses: Controller = merge('AddressMergeControllers.net.talos.dev', AddressSpec, strongest)

/** Gives links their addresses; an address that is wished no more is taken away again. */
export const applyAddresses = ({ net }: Pick<Kernel, 'net'>): Controller => {
  const given = new Map<string, { address: string; linkName: string }>()
  return defineController({
    name: 'network.AddressSpecController',
    inputs: { specs: strong(AddressSpec), links: weak(LinkStatus) },
    outputs: {},
    reconcile({ specs, links, log }) {
      using network = net.openNetwork()
      const index = (name: string) => links.get(name)?.spec.index
      const present = new Set(network.addresses().map(({ link, address }) => `${link} ${address}`))
      const wanted = new Map(specs.list().map(({ metadata, spec }) => [metadata.id, spec]))
      for (const [id, { address, linkName }] of given) {
        if (wanted.has(id)) continue
        const link = index(linkName)
        if (link !== undefined) {
          log.info('removing address', { link: linkName, address })
          network.removeAddress({ link, address })
        }
        given.delete(id)
      }
      for (const [id, { address, linkName, scope, priority }] of wanted) {
        const link = index(linkName)
        if (link === undefined) continue // the link's coming wakes us
        if (!present.has(`${link} ${address}`)) {
          log.info('adding address', { link: linkName, address })
          network.addAddress({ link, address, scope: scopeNumber(scope), ...(priority ? { priority } : {}) })
        }
        given.set(id, { address, linkName })
      }
    },
  })
}

function addressSpec(linkName: string, address: string, scope: string, layer: 'default' | 'configuration') {
  return { address, linkName, family: address.includes(':') ? 'inet6' : 'inet4', scope, flags: 'permanent', layer }
}

function withLength(address: string): string {
  return address.includes('/') ? address : `${address}/${address.includes(':') ? 128 : 32}`
}
