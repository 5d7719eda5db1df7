/** Addresses and networks as the kernel reports them, so that declared and observed ones compare equal. */

import { formatIp, parseIp } from '../../../wire/ip.ts'

/** An address with its prefix length in the kernel's notation; without a length, that of a single address. */
export function canonicalPrefix(text: string): string {
  const [ip = '', length] = text.split('/')
  const bytes = parseIp(ip)
  return bytes ? `${formatIp(bytes)}/${length ?? bytes.length * 8}` : text
}

/** A destination in the kernel's notation: host bits cleared, '' for the default route. */
export function canonicalDestination(text: string): string {
  const [ip = '', length] = text.split('/')
  const bytes = parseIp(ip)
  if (!bytes) return text
  const bits = length === undefined ? bytes.length * 8 : Number(length)
  if (bits === 0) return ''
  const masked = bytes.map((byte, index) => byte & (0xff00 >> Math.max(0, Math.min(8, bits - index * 8))))
  return `${formatIp(masked)}/${bits}`
}

/** An address in its canonical form; other text, and nothing, as it is. */
export const canonicalIp = (text = '') => {
  const bytes = parseIp(text)
  return bytes ? formatIp(bytes) : text
}
