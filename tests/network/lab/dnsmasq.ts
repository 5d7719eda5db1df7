/** dnsmasq as a server of addresses alone, in a namespace of a story. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { program } from './namespaces.ts'

/** Where it is, undefined when it is not installed. */
export const dnsmasq = program('dnsmasq')

/** Prints `DHCP, ` or `DHCPv6, ` on its error output for each range, once it serves it. */
export function dnsmasqServing(folder: string, link: string, ...options: string[]): string[] {
  const conf = join(folder, 'dnsmasq.conf')
  const own = ['port=0', `interface=${link}`, 'bind-dynamic', 'no-ping', 'leasefile-ro', 'dhcp-authoritative', 'user=root', 'pid-file=']
  writeFileSync(conf, [...own, ...options].join('\n'))
  return [dnsmasq!, '--keep-in-foreground', '--log-facility=-', `--conf-file=${conf}`]
}
