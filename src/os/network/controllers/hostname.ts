import { type Controller, defineController, shared, weak } from '../../../cosi/controller.ts'
import { merge, strongest } from '../../../cosi/merge.ts'
import { transform } from '../../../cosi/transform.ts'
import { Identity } from '../../cluster/resources/identity.ts'
import { declared, find } from '../../config/public.ts'
import { MachineConfig } from '../../config/resources/machine-config.ts'
import type { Kernel } from '../../kernel.ts'
import { type BootNetwork, silentBoot } from '../boot-network.ts'
import { HostnameConfig } from '../documents/hostname.ts'
import { splitName } from '../full-name.ts'
import { HostnameSpec, HostnameStatus } from '../resources/hostname.ts'
import { NodeAddress } from '../resources/node-address.ts'

/** Declares the configured hostname; without one, a name derived from the node's identity or address. */
export const configHostname = (boot: BootNetwork = silentBoot): Controller =>
  defineController({
    name: 'network.HostnameConfigController',
    effects: 'none',
    inputs: { config: weak(MachineConfig, { id: 'v1alpha1' }), addresses: weak(NodeAddress), identity: weak(Identity) },
    outputs: { spec: shared(HostnameSpec, 'network-config') },
    reconcile({ config, addresses, identity, spec }) {
      if (boot.hostname) spec.put('cmdline/hostname', { ...splitName(boot.hostname), layer: 'cmdline' })
      const found = declared(config.get('v1alpha1'))
      const document = find(found, HostnameConfig)
      const named = document?.hostname || found?.machine.network?.hostname
      if (named) spec.put('configuration/hostname', { ...splitName(named), layer: 'configuration' })
      const auto = document?.auto ?? (found?.machine.features?.stableHostname === false ? 'addr' : 'stable')
      const id = identity.get('local')?.spec.nodeId
      const address = addresses.get('default')?.spec.addresses[0]
      if (auto === 'stable' && id) spec.put('default/hostname', { hostname: stableName(id), domainname: '', layer: 'default' })
      if (auto === 'addr' && address) spec.put('default/hostname', { hostname: addressName(address), domainname: '', layer: 'default' })
    },
  })

/** Selects the hostname of the strongest layer. */
export const mergeHostname: Controller = merge('HostnameMergeControllers.net.talos.dev', HostnameSpec, strongest, {
  id: () => 'hostname',
})

/** Sets the kernel's hostname and publishes it. */
export const applyHostname = ({ uts }: { uts: Pick<Kernel['uts'], 'sethostname' | 'setdomainname'> }): Controller =>
  transform({
    name: 'network.HostnameSpecController',
    from: HostnameSpec,
    to: HostnameStatus,
    strong: true,
    apply({ hostname, domainname }, { log }) {
      log.info('setting hostname', { hostname, domainname })
      uts.sethostname(hostname)
      uts.setdomainname(domainname)
      return { hostname, domainname }
    },
  })

/** A hostname that is stable as long as the node identity is. */
function stableName(nodeId: string): string {
  const digest = new Bun.CryptoHasher('sha256').update(nodeId).digest()
  const digits = digest.readBigUInt64BE(0).toString(36).padStart(8, '0')
  return `talos-${digits.slice(1, 4)}-${digits.slice(4, 7)}`
}

function addressName(prefix: string): string {
  return `talos-${prefix.slice(0, prefix.indexOf('/')).replaceAll(':', '').replaceAll('.', '-')}`
}
