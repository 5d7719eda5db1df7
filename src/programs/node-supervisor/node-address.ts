import { formatMac, parseIp } from '../../wire/ip.ts'

/** The hardware address of a node, the same whenever it is started: of the last four bytes of its address. */
export function macOf(ip: string): string {
  return formatMac(new Uint8Array([0x02, 0x1c, ...(parseIp(ip) ?? new Uint8Array(4)).slice(-4)]))
}
