/**
 * The host's own packet filter may drop what it does not know, as it does on machines with Docker or a desktop's firewall.
 * What comes from and goes to a cluster's bridge is accepted ahead of those rules, through the iptables that made them.
 */

import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { isIPv6 } from '../../../../wire/prefix.ts'

const commandTimeout = 10_000

/** The rules for a bridge: into the host, out of the bridge, onto it. */
export function rulesFor(bridge: string): string[][] {
  return [
    ['INPUT', '-i', bridge, '-j', 'ACCEPT'],
    ['FORWARD', '-i', bridge, '-j', 'ACCEPT'],
    ['FORWARD', '-o', bridge, '-j', 'ACCEPT'],
  ]
}

/** The iptables of this host for the families of a cluster; one that is not there has nobody's rules in the way. */
export function hostIptables(networks: readonly string[]): string[] {
  return [...new Set(networks.map((cidr) => (isIPv6(cidr) ? 'ip6tables' : 'iptables')))].flatMap(
    (name) => ['/usr/sbin', '/sbin', '/usr/bin'].map((folder) => `${folder}/${name}`).find((path) => existsSync(path)) ?? [],
  )
}

/** Accepts a bridge's packets ahead of all other rules; false when the filter would not have it. */
export async function acceptBridge(iptables: string, bridge: string): Promise<boolean> {
  for (const rule of rulesFor(bridge)) {
    if ((await run(iptables, ['-C', ...rule])) === 0) continue
    if ((await run(iptables, ['-I', ...rule])) !== 0) return false
  }
  return true
}

/** Takes a bridge's rules away again; absent is fine. */
export async function forgetBridge(iptables: string, bridge: string): Promise<void> {
  for (const rule of rulesFor(bridge)) {
    if ((await run(iptables, ['-C', ...rule])) !== 0) continue
    const code = await run(iptables, ['-D', ...rule])
    if (code !== 0) throw new Error(`"${iptables} -D ${rule.join(' ')}" ended with code ${code}`)
  }
}

function run(command: string, args: string[]): Promise<number> {
  return new Promise((resolve) => {
    const child = spawn(command, ['-w', ...args], { stdio: 'ignore', timeout: commandTimeout })
    child.once('error', () => resolve(127))
    child.once('exit', (code) => resolve(code ?? 1))
  })
}
