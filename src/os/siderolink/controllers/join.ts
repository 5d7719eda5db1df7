import { type Controller, defineController, exclusive, shared, type Writer, weak } from '../../../cosi/controller.ts'
import type { SpecOf } from '../../../cosi/resource.ts'
import { newPrivateKey, publicKeyOf } from '../../../wire/wireguard/keys.ts'
import type { Machine } from '../../area.ts'
import { machineUuid } from '../../cluster/public.ts'
import { Identity } from '../../cluster/resources/identity.ts'
import { SystemInformation } from '../../hardware/resources/system-information.ts'
import type { Kernel } from '../../kernel.ts'
import type { WireguardPresence } from '../../kubespan/public.ts'
import { AddressSpec } from '../../network/resources/address.ts'
import { LinkSpec } from '../../network/resources/link.ts'
import { NetworkStatus } from '../../network/resources/network-status.ts'
import { KernelModuleSpec } from '../../runtime/resources/kernel-module.ts'
import { UniqueMachineToken } from '../../runtime/resources/unique-machine-token.ts'
import type { GrpcTunnel } from '../grpc-tunnel.ts'
import { addressSpec, isHeard, layer, linkMtu, linkNames, linkSpec } from '../link.ts'
import { type Join, Membership } from '../membership.ts'
import { type Applicant, provision } from '../provision.ts'
import { SiderolinkConfig, SiderolinkTunnel } from '../resources/siderolink.ts'

/** What the controller is given. */
export interface ManagerContext extends Pick<Machine, 'outbound' | 'version'> {
  readonly kernel: Pick<Kernel, 'mode' | 'net' | 'wireguard'>
  readonly presence: WireguardPresence
  readonly tunnel: GrpcTunnel
}

/** Joins the network of the management server: requests admission, and keeps a link to the server. */
export const joinSiderolink = ({ kernel, presence, tunnel, outbound, version }: ManagerContext): Controller => {
  const privateKey = newPrivateKey() // of this start, never stored
  const membership = new Membership()
  return defineController({
    name: 'siderolink.ManagerController',
    inputs: {
      config: weak(SiderolinkConfig, { id: 'siderolink' }),
      system: weak(SystemInformation, { id: 'systeminformation' }),
      identity: weak(Identity, { id: 'local' }),
      token: weak(UniqueMachineToken, { id: 'unique-machine-token' }),
      network: weak(NetworkStatus, { id: 'status' }),
    },
    outputs: {
      links: shared(LinkSpec, 'network-config'),
      addresses: shared(AddressSpec, 'network-config'),
      tunnels: exclusive(SiderolinkTunnel),
      modules: shared(KernelModuleSpec),
    },
    async reconcile({ config, system, identity, token, network, modules, clock, wakeIn, signal, log, ...outputs }) {
      const server = config.get('siderolink')?.spec
      if (!server) {
        membership.leave()
        return tunnel.close()
      }
      const nodeId = identity.get('local')?.spec.nodeId
      const firmware = system.get('systeminformation')?.spec.uuid
      // A container sees no firmware: its identity stands for it.
      const uuid = firmware ?? (kernel.mode === 'container' && nodeId ? machineUuid(nodeId) : undefined)
      const uniqueToken = token.get('unique-machine-token')?.spec.token
      if (!uuid || uniqueToken === undefined || !(membership.join || network.get('status')?.spec.addressReady)) return
      if (kernel.mode === 'metal') modules.put('wireguard', { string: 'wireguard', parameters: [] })
      const there = presence.look(clock.elapsed())
      if (there === 'lacking') throw new Error('the kernel has no WireGuard, and no TUN devices for one in user space')
      if (there === 'awaited') return wakeIn(presence.again(clock.elapsed()))
      const { joinToken, host, insecure: plain } = server
      const publicKey = publicKeyOf(privateKey)
      const applicant: Applicant = { uuid, publicKey, joinToken, uniqueToken, version: version.tag, tunnel: server.tunnel }
      const look = { time: clock.elapsed(), heard: isHeard(kernel, linkOf(membership.join), clock.now().getTime() / 1000) }
      const join = await membership.keep([server.apiEndpoint, uuid, uniqueToken].join(' '), look, {
        admit: async () => {
          const admission = await provision(outbound.target(host, { plain }), applicant, signal)
          log.info('admitted by the management server', { address: admission.address, tunnel: admission.tunnelAddress !== undefined })
          tunnel.restart()
          return admission
        },
        tunnelEndpoint: () => tunnel.endpoint(),
      })
      putLink(outputs, join, { privateKey, apiEndpoint: server.apiEndpoint })
      wakeIn(membership.next(clock.elapsed()))
    },
  })
}

type Put<T> = Pick<Writer<SpecOf<T>>, 'put'>

interface LinkOutputs {
  links: Put<typeof LinkSpec>
  addresses: Put<typeof AddressSpec>
  tunnels: Put<typeof SiderolinkTunnel>
}

const linkOf = (join: Join | undefined) => (join?.admission.tunnelAddress ? linkNames.tunnel : linkNames.datagrams)

function putLink({ links, addresses, tunnels }: LinkOutputs, join: Join, own: { privateKey: string; apiEndpoint: string }): void {
  const linkName = linkOf(join)
  const { address, tunnelAddress } = join.admission
  links.put(`${layer}/${linkName}`, linkSpec(linkName, own.privateKey, join))
  addresses.put(`${layer}/${linkName}/${address}`, addressSpec(linkName, join))
  if (tunnelAddress) tunnels.put('siderolink-tunnel', { apiEndpoint: own.apiEndpoint, linkName, mtu: linkMtu, nodeAddress: tunnelAddress })
}
