import type { SpecOf } from '../../../cosi/resource.ts'
import { DecodeError } from '../../../wire/decode-error.ts'
import { type Dhcp4Message, dhcp4Ports, readDhcp4, writeDhcp4 } from '../../../wire/dhcp/dhcp4.ts'
import { arpProbe, readArp } from '../../../wire/packet/arp.ts'
import { readDatagram, writeDatagram } from '../../../wire/packet/datagram.ts'
import { addressOnly, containsAddress, parsePrefix } from '../../../wire/prefix.ts'
import type { Kernel } from '../../kernel.ts'
import type { RouteSpec } from '../resources/route.ts'
import { Dhcp4Client, type Dhcp4Lease, type Dhcp4Transport } from './dhcp4-client.ts'
import { Inbox } from './inbox.ts'
import type { Clock, Findings, Operation, Operator } from './operator.ts'

type Packets = Pick<Kernel['packet'], 'openPacket' | 'broadcast'>

/** How long to wait for an ARP reply to a probe, in milliseconds. */
const probeTime = 90

/** Runs the DHCPv4 client on a packet socket of the link. */
export const dhcp4Operator =
  (packets: Packets): Operator =>
  async ({ spec, link, signal, log, clock, hostname, report, memory }) => {
    if (!spec.dhcp4) throw new TypeError('an operator of DHCPv4 without its settings')
    const { routeMetric, skipHostnameRequest = false, clientIdentifier } = spec.dhcp4
    const inbox = new Inbox<{ message: Dhcp4Message; station: string }>()
    const socket = packets.openPacket(link, { family: 'ip4', port: dhcp4Ports.client }, (packet, station) => {
      try {
        const message = readDhcp4(readDatagram(packet).payload)
        if (message.hardwareAddress === link.hardwareAddress) inbox.put({ message, station })
      } catch (error) {
        if (!(error instanceof DecodeError)) throw error
        log.debug('ignoring malformed DHCP packet', { error: error.message })
      }
    })
    try {
      const client = new Dhcp4Client({
        clock,
        log,
        hostname,
        settings: {
          hardwareAddress: link.hardwareAddress,
          clientIdentifier: (clientIdentifier?.clientIdentifier ?? 'mac') as 'none' | 'mac' | 'duid',
          ...(clientIdentifier?.duidRawHex && { duid: Buffer.from(clientIdentifier.duidRawHex, 'hex') }),
          skipHostname: skipHostnameRequest,
        },
        transport: {
          send(message, to) {
            const everybody = to === 'everybody'
            const datagram = writeDatagram({
              source: everybody ? '0.0.0.0' : to.from,
              destination: everybody ? '255.255.255.255' : to.address,
              sourcePort: dhcp4Ports.client,
              destinationPort: dhcp4Ports.server,
              payload: writeDhcp4(message),
            })
            socket.send(datagram, everybody ? packets.broadcast : to.station)
          },
          receive: (transaction, milliseconds, until) =>
            inbox.take(({ message }) => message.transaction === transaction, milliseconds, clock, until),
          taken: (address, until) => taken(packets, { link, clock }, address, until),
        } satisfies Dhcp4Transport,
      })
      const before = memory.get('lease') as Dhcp4Lease | undefined
      await client.run(
        (lease) => {
          memory.set('lease', lease)
          report(lease && findingsOf(lease, spec.linkName, routeMetric))
        },
        signal,
        before,
      )
    } finally {
      socket.close()
    }
  }

/** Probes the address twice by ARP (RFC 5227 2.1.1, with shorter waits). True if another station holds it or probes for it too. */
async function taken(
  packets: Packets,
  { link, clock }: { link: Operation['link']; clock: Clock },
  address: string,
  signal: AbortSignal,
): Promise<boolean> {
  const answers = new Inbox<true>()
  const socket = packets.openPacket(link, 'arp', (packet) => {
    try {
      const { senderMac, senderIp, targetIp } = readArp(packet)
      const other = senderMac !== link.hardwareAddress
      if (other && (senderIp === address || (senderIp === '0.0.0.0' && targetIp === address))) answers.put(true)
    } catch (error) {
      if (!(error instanceof DecodeError)) throw error
    }
  })
  try {
    for (let probes = 0; probes < 2 && !signal.aborted; probes++) {
      socket.send(arpProbe(link.hardwareAddress, address), packets.broadcast)
      if (await answers.take(() => true, probeTime / 2, clock, signal)) return true
    }
    return false
  } finally {
    socket.close()
  }
}

/** Converts a lease to specs of the operator layer. */
export function findingsOf(lease: Dhcp4Lease, linkName: string, metric: number): Findings {
  const family = 'inet4'
  const address = addressOnly(lease.address)
  const own = parsePrefix(lease.address)
  const route = (dst: string, gateway: string): SpecOf<typeof RouteSpec> => ({
    family,
    dst,
    src: address,
    gateway,
    outLinkName: linkName,
    table: 'main',
    priority: metric,
    scope: gateway ? 'global' : 'link',
    type: 'unicast',
    flags: '',
    protocol: 'dhcp',
    layer: 'operator',
  })
  const given = lease.routes ?? lease.routers.slice(0, 1).map((gateway) => ({ destination: '', gateway }))
  const routes = given.flatMap(({ destination, gateway }) => {
    // A gateway outside the link's network needs a host route to itself.
    const outside = gateway !== '' && !containsAddress(own, gateway)
    return [...(outside ? [route(`${gateway}/32`, '')] : []), route(destination, gateway)]
  })
  const dot = lease.hostname.indexOf('.')
  return {
    addresses: [{ address: lease.address, linkName, family, scope: 'global', flags: 'permanent', layer: 'operator' }],
    routes: [...new Map(routes.map((spec) => [`${spec.dst} ${spec.gateway}`, spec])).values()],
    mtu: lease.mtu,
    ...(lease.hostname && {
      hostname: {
        hostname: dot < 0 ? lease.hostname : lease.hostname.slice(0, dot),
        domainname: dot < 0 ? lease.domain : lease.hostname.slice(dot + 1),
        layer: 'operator',
      },
    }),
    nameServers: lease.nameServers,
    searchDomains: lease.search.length > 0 ? lease.search : lease.domain ? [lease.domain] : [],
    timeServers: lease.timeServers,
    until: lease.expiresAt,
  }
}
