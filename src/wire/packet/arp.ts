/** ARP for IPv4 over Ethernet (RFC 826, RFC 5227), and the unsolicited neighbour advertisement for IPv6 (RFC 4861). */

import { DecodeError } from '../decode-error.ts'
import { formatIp, formatMac, parseIp, parseMac } from '../ip.ts'
import { internetChecksum } from './datagram.ts'

/** An ARP request or reply. */
export interface Arp {
  operation: 'request' | 'reply'
  senderMac: string
  senderIp: string
  targetMac: string
  targetIp: string
}

const length = 28
const noMac = '00:00:00:00:00:00'

function bytesOf(mac: string, ip: string): Uint8Array {
  const [hardware, address] = [parseMac(mac), parseIp(ip)]
  if (hardware?.length !== 6 || address?.length !== 4) throw new RangeError(`"${mac}", "${ip}": no Ethernet and IPv4 address`)
  return Buffer.concat([hardware, address])
}

/** Encodes an ARP packet. */
function writeArp({ operation, senderMac, senderIp, targetMac, targetIp }: Arp): Uint8Array {
  const head = Buffer.from([0, 1, 8, 0, 6, 4, 0, operation === 'request' ? 1 : 2])
  return Buffer.concat([head, bytesOf(senderMac, senderIp), bytesOf(targetMac, targetIp)])
}

/** Decodes an ARP packet of Ethernet and IPv4. */
export function readArp(bytes: Uint8Array): Arp {
  if (bytes.length < length) throw new DecodeError('ARP', bytes.length, 'too short')
  if (!Buffer.from(bytes.subarray(0, 6)).equals(Buffer.from([0, 1, 8, 0, 6, 4])))
    throw new DecodeError('ARP', 0, 'not of Ethernet and IPv4')
  const operation = new DataView(bytes.buffer, bytes.byteOffset).getUint16(6)
  if (operation !== 1 && operation !== 2) throw new DecodeError('ARP', 6, `operation ${operation}`)
  return {
    operation: operation === 1 ? 'request' : 'reply',
    senderMac: formatMac(bytes.subarray(8, 14)),
    senderIp: formatIp(bytes.subarray(14, 18)),
    targetMac: formatMac(bytes.subarray(18, 24)),
    targetIp: formatIp(bytes.subarray(24, 28)),
  }
}

/** A probe: queries for an address without claiming it (RFC 5227 2.1.1). */
export const arpProbe = (mac: string, ip: string): Uint8Array =>
  writeArp({ operation: 'request', senderMac: mac, senderIp: '0.0.0.0', targetMac: noMac, targetIp: ip })

/** An announcement: claims an address (RFC 5227 2.3). */
export const arpAnnouncement = (mac: string, ip: string): Uint8Array =>
  writeArp({ operation: 'request', senderMac: mac, senderIp: ip, targetMac: noMac, targetIp: ip })

/** An unsolicited neighbour advertisement to all nodes: claims an address (RFC 4861 7.2.6). */
export function neighbourAdvertisement(mac: string, ip: string): Uint8Array {
  const [hardware, address] = [parseMac(mac), parseIp(ip)]
  if (hardware?.length !== 6 || address?.length !== 16) throw new RangeError(`"${mac}", "${ip}": no Ethernet and IPv6 address`)
  const everybody = Buffer.from('ff020000000000000000000000000001', 'hex')
  const override = 0x20
  const body = Buffer.concat([Buffer.from([136, 0, 0, 0, override, 0, 0, 0]), address, Buffer.from([2, 1]), hardware])
  const pseudo = Buffer.concat([address, everybody, Buffer.from([0, 0, 0, body.length, 0, 0, 0, 58])])
  body.writeUInt16BE(internetChecksum(pseudo, body), 2)
  return Buffer.concat([Buffer.from([0x60, 0, 0, 0, 0, body.length, 58, 255]), address, everybody, body])
}
