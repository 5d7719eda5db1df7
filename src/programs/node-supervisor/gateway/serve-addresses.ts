/** Gives the virtual machines of a cluster their addresses (RFC 2131), and nobody else any. */

import { openPacket } from '../../../linux/net/packet.ts'
import { openNetwork } from '../../../linux/net/rtnetlink.ts'
import { DecodeError } from '../../../wire/decode-error.ts'
import { type Dhcp4Message, dhcp4Ports, dhcp4Type, readDhcp4, writeDhcp4 } from '../../../wire/dhcp/dhcp4.ts'
import { Dhcp4Options, dhcp4Option, optionAddresses, optionNumber } from '../../../wire/dhcp/dhcp4-options.ts'
import { readDatagram, writeDatagram } from '../../../wire/packet/datagram.ts'
import { isIPv6 } from '../../../wire/prefix.ts'
import type { ClusterRecord } from '../layout.ts'
import { macOf } from '../node-address.ts'

/** Seconds: an address belongs to a node for as long as the node exists. */
const leaseTime = 24 * 3600

/** The reply to a message; undefined when it is ignored. */
export function answer(cluster: ClusterRecord, request: Dhcp4Message): Dhcp4Message | undefined {
  if (request.operation !== 'request') return undefined
  const node = cluster.nodes.find(({ ip }) => macOf(ip) === request.hardwareAddress)
  if (!node) return undefined
  const options = new Dhcp4Options(request.options)
  const { network } = cluster
  if (options.server !== undefined && options.server !== network.gateway) return undefined
  const type = { [dhcp4Type.discover]: dhcp4Type.offer, [dhcp4Type.request]: dhcp4Type.ack, [dhcp4Type.inform]: dhcp4Type.ack }[
    options.type ?? 0
  ]
  if (type === undefined) return undefined
  const requested = request.options.get(dhcp4Option.requestedAddress)
  const claimed = requested ? requested.join('.') : request.clientAddress
  // RFC 2131 4.3.2: a request for an address that is not the client's gets a NAK, so that the client restarts discovery.
  const refused = options.type === dhcp4Type.request && claimed !== '0.0.0.0' && claimed !== node.ip
  return {
    ...request,
    operation: 'reply',
    seconds: 0,
    yourAddress: refused || options.type === dhcp4Type.inform ? '0.0.0.0' : node.ip,
    nextServer: '0.0.0.0',
    options: new Map([
      [dhcp4Option.messageType, optionNumber(refused ? dhcp4Type.nak : type, 1)],
      [dhcp4Option.server, optionAddresses(network.gateway)],
      ...(refused ? [] : settings(cluster)),
    ]),
  }
}

function settings({ network }: ClusterRecord): [number, Uint8Array][] {
  const mask = (0xffffffff << (32 - Number(network.cidr.split('/')[1]))) >>> 0
  return [
    [dhcp4Option.leaseTime, optionNumber(leaseTime, 4)],
    [dhcp4Option.subnetMask, optionNumber(mask, 4)],
    [dhcp4Option.routers, optionAddresses(network.gateway)],
    [dhcp4Option.nameServers, optionAddresses(...network.nameservers.filter((address) => !isIPv6(address)))],
    [dhcp4Option.mtu, optionNumber(network.mtu, 2)],
  ]
}

/** Serves on the cluster's bridge until it is closed. */
export function serveAddresses(current: () => ClusterRecord): { close(): void } {
  const { network } = current()
  using host = openNetwork()
  const hardwareAddress = macOf(network.gateway)
  const link = { index: host.indexOf(network.bridge), name: network.bridge, hardwareAddress }
  const socket = openPacket(link, { family: 'ip4', port: dhcp4Ports.server }, (packet) => {
    const request = readRequest(packet)
    const reply = request && answer(current(), request)
    if (!reply) return
    const known = request.clientAddress !== '0.0.0.0' && reply.yourAddress !== '0.0.0.0'
    const datagram = {
      source: network.gateway,
      sourcePort: dhcp4Ports.server,
      // A client without an address receives broadcasts (RFC 2131 4.1).
      destination: known ? request.clientAddress : '255.255.255.255',
      destinationPort: dhcp4Ports.client,
      payload: writeDhcp4(reply),
    }
    socket.send(writeDatagram(datagram), request.hardwareAddress)
  })
  return socket
}

function readRequest(packet: Uint8Array): Dhcp4Message | undefined {
  try {
    return readDhcp4(readDatagram(packet).payload)
  } catch (error) {
    if (error instanceof DecodeError) return undefined
    throw error
  }
}
