/** Formats a packet in one line: source, destination and contents. */
import { formatIp, formatMac } from '../ip.ts'
import { linkType, type PcapRecord } from './pcap.ts'

/** Time of day in UTC, then addresses, protocol and length. A truncated packet is shown as far as possible. */
export function packetSummary({ time, bytes, length }: PcapRecord, type: number): string {
  const clock = `${new Date(Math.floor(time / 1000)).toISOString().slice(11, 23)}${String(Math.floor(time % 1000)).padStart(3, '0')}`
  const view = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
  const what = type === linkType.raw ? network(view, (view[0] ?? 0) >> 4 === 6 ? 0x86dd : 0x0800) : frame(view)
  return `${clock} ${what ?? 'cut off'}, length ${length}`
}

function frame(view: Buffer): string | undefined {
  if (view.length < 14) return undefined
  let type = view.readUInt16BE(12)
  let at = 14
  if (type === 0x8100 && view.length >= 18) {
    type = view.readUInt16BE(16)
    at = 18
  }
  return (
    network(view.subarray(at), type) ??
    `${formatMac(view.subarray(6, 12))} > ${formatMac(view.subarray(0, 6))}: type 0x${type.toString(16).padStart(4, '0')}`
  )
}

function network(view: Buffer, type: number): string | undefined {
  if (type === 0x0800) {
    if (view.length < 20) return undefined
    const head = ((view[0] ?? 0) & 15) * 4
    const fragment = view.readUInt16BE(6) & 0x1fff
    const [from, to] = [formatIp(view.subarray(12, 16)), formatIp(view.subarray(16, 20))]
    const payload = view.readUInt16BE(2) - head
    return `IP ${transport(view.subarray(head), fragment ? -1 : (view[9] ?? 0), from, to, payload)}`
  }
  if (type === 0x86dd) {
    if (view.length < 40) return undefined
    const [from, to] = [formatIp(view.subarray(8, 24)), formatIp(view.subarray(24, 40))]
    return `IP6 ${transport(view.subarray(40), view[6] ?? 0, from, to, view.readUInt16BE(4))}`
  }
  if (type === 0x0806) return arp(view)
  return undefined
}

const flagNames: readonly [number, string][] = [
  [2, 'S'],
  [1, 'F'],
  [4, 'R'],
  [8, 'P'],
  [16, '.'],
]

function transport(view: Buffer, protocol: number, from: string, to: string, length: number): string {
  if (protocol === -1) return `${from} > ${to}: a later fragment`
  const ports = (protocol === 6 || protocol === 17) && view.length >= 8
  const [source, target] = ports ? [`${from}.${view.readUInt16BE(0)}`, `${to}.${view.readUInt16BE(2)}`] : [from, to]
  if (protocol === 17 && ports) return `${source} > ${target}: UDP ${view.readUInt16BE(4) - 8}`
  if (protocol === 6 && view.length >= 16) {
    const flags = flagNames.flatMap(([bit, name]) => ((view[13] ?? 0) & bit ? [name] : [])).join('')
    const payload = length - ((view[12] ?? 0) >> 4) * 4
    return `${source} > ${target}: TCP [${flags}] seq ${view.readUInt32BE(4)} ack ${view.readUInt32BE(8)} win ${view.readUInt16BE(14)} ${payload}`
  }
  const names: Record<number, string> = { 1: 'ICMP', 6: 'TCP', 17: 'UDP', 58: 'ICMP6', 132: 'SCTP', 4: 'IPIP', 47: 'GRE' }
  const kind = (protocol === 1 || protocol === 58) && view.length >= 2 ? ` type ${view[0]} code ${view[1]}` : ''
  return `${from} > ${to}: ${names[protocol] ?? `protocol ${protocol}`}${kind}`
}

function arp(view: Buffer): string | undefined {
  if (view.length < 28) return undefined
  const [sender, target] = [formatIp(view.subarray(14, 18)), formatIp(view.subarray(24, 28))]
  if (view.readUInt16BE(6) === 1) return `ARP who has ${target}, tell ${sender}`
  return `ARP ${sender} is at ${formatMac(view.subarray(8, 14))}`
}
