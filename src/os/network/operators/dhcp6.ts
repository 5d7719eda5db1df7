import { DecodeError } from '../../../wire/decode-error.ts'
import { allServers, type Dhcp6Message, dhcp6Ports, readDhcp6, writeDhcp6 } from '../../../wire/dhcp/dhcp6.ts'
import { parseMac } from '../../../wire/ip.ts'
import { readDatagram, writeDatagram } from '../../../wire/packet/datagram.ts'
import type { Kernel } from '../../kernel.ts'
import { Dhcp6Client, type Dhcp6Lease } from './dhcp6-client.ts'
import { Inbox } from './inbox.ts'
import type { Findings, Operator } from './operator.ts'

/** Maximum time for the kernel's duplicate address detection (RFC 4862 5.4), in milliseconds. */
const probeTime = 10_000

/** Multicast hardware address of all DHCPv6 servers (RFC 2464 7). */
const serverStations = '33:33:00:01:00:02'

/** Runs the DHCPv6 client on a packet socket of the link. It starts once the link-local address has passed duplicate address detection. */
export const dhcp6Operator =
  (packets: Pick<Kernel['packet'], 'openPacket'>): Operator =>
  async ({ spec, link, signal, log, clock, report, memory, linkLocal, taken }) => {
    const mac = parseMac(link.hardwareAddress) ?? new Uint8Array(6)
    const raw = spec.dhcp6?.clientIdentifier?.duidRawHex
    // RFC 8415 11.4: DUID-LL, made of the hardware address
    const duid = raw ? Buffer.from(raw, 'hex') : Buffer.concat([Buffer.from([0, 3, 0, 1]), mac])
    while (linkLocal() === undefined && !signal.aborted) await clock.sleep(20, signal)
    const inbox = new Inbox<Dhcp6Message>()
    const socket = packets.openPacket(link, { family: 'ip6', port: dhcp6Ports.client }, (packet) => {
      try {
        inbox.put(readDhcp6(readDatagram(packet).payload))
      } catch (error) {
        if (!(error instanceof DecodeError)) throw error
        log.debug('ignoring malformed DHCPv6 packet', { error: error.message })
      }
    })
    try {
      const client = new Dhcp6Client({
        clock,
        log,
        duid,
        association: Buffer.from(mac).readUInt32BE(mac.length - 4),
        transport: {
          send: (message) =>
            socket.send(
              writeDatagram(
                {
                  source: linkLocal() ?? '::',
                  destination: allServers,
                  sourcePort: dhcp6Ports.client,
                  destinationPort: dhcp6Ports.server,
                  payload: writeDhcp6(message),
                },
                { hops: 1 },
              ),
              serverStations,
            ),
          receive: (transaction, milliseconds, until) =>
            inbox.take((message) => message.transaction === transaction, milliseconds, clock, until),
          async taken(addresses, until) {
            const end = clock.now() + probeTime
            for (; !until.aborted && clock.now() < end; await clock.sleep(50, until)) {
              const found = addresses.map((address) => taken(`${address}/128`))
              if (found.includes(true)) return true
              if (!found.includes(undefined)) return false
            }
            return false
          },
        },
      })
      await client.run(
        (lease) => {
          memory.set('lease', lease)
          report(lease && findingsOf(lease, spec.linkName))
        },
        signal,
        memory.get('lease') as Dhcp6Lease | undefined,
      )
    } finally {
      socket.close()
    }
  }

/** Converts a lease to specs of the operator layer. Routes come from router advertisements. */
function findingsOf({ addresses, nameServers, search, timeServers, expiresAt }: Dhcp6Lease, linkName: string): Findings {
  return {
    addresses: addresses.map((address) => ({
      address: `${address}/128`,
      linkName,
      family: 'inet6',
      scope: 'global',
      flags: 'permanent',
      layer: 'operator',
    })),
    routes: [],
    nameServers,
    searchDomains: search,
    timeServers,
    until: expiresAt,
  }
}
