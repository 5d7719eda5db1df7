/** The WireGuard link to a management server: its names, and the state of its only peer. */
import type { SpecOf } from '../../cosi/resource.ts'
import { addressOnly } from '../../wire/prefix.ts'
import type { Kernel } from '../kernel.ts'
import { wireguardPeers } from '../kubespan/public.ts'
import type { AddressSpec } from '../network/resources/address.ts'
import type { LinkSpec } from '../network/resources/link.ts'
import type { Join } from './membership.ts'

/** The link over datagrams, and the one over gRPC. */
export const linkNames = { datagrams: 'siderolink', tunnel: 'siderolinktun' } as const
/** Bytes of a packet, so that it fits into any path. */
export const linkMtu = 1280
/** Seconds between packets that keep mappings of address translators alive. */
export const keepalive = 25
/** Seconds after a handshake at which the server counts the machine as gone, and the other way round. */
const silence = 275
/** Milliseconds between two looks at the peer. */
export const lookInterval = 30_000
/** The layer of its specs: a configuration cannot change them. */
export const layer = 'operator' as const

/** Whether the server was heard lately; `now` is in seconds since 1970. */
export const isHeard = (kernel: Pick<Kernel, 'net' | 'wireguard'>, name: string, now: number): boolean =>
  wireguardPeers(kernel, name)?.some(({ lastHandshake }) => lastHandshake > 0 && now - lastHandshake < silence) ?? false

/** The link, with the server as its only peer. */
export function linkSpec(name: string, privateKey: string, { admission, endpoint }: Join): SpecOf<typeof LinkSpec> {
  return {
    name,
    logical: true,
    up: true,
    mtu: linkMtu,
    kind: 'wireguard',
    type: 'nohdr',
    layer,
    wireguard: {
      privateKey,
      listenPort: 0,
      firewallMark: 0,
      peers: [
        {
          publicKey: admission.serverKey,
          presharedKey: '',
          endpoint,
          persistentKeepaliveInterval: `${keepalive}s`,
          allowedIPs: [`${addressOnly(admission.serverAddress)}/128`],
        },
      ],
    },
  }
}

/** The machine's address in the network of the server. */
export const addressSpec = (linkName: string, { admission }: Join): SpecOf<typeof AddressSpec> => ({
  address: admission.address,
  linkName,
  family: 'inet6',
  scope: 'global',
  flags: 'permanent',
  layer,
})
