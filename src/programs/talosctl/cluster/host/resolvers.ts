import { readFileSync } from 'node:fs'
import net from 'node:net'

/** What /etc/resolv.conf names, in its order: addresses that nodes can use as they are, and those only this host can. */
export function parseResolvConf(text: string): { routable: string[]; loopback: string[] } {
  const servers = text
    .split('\n')
    .map((line) => /^\s*nameserver\s+(\S+)/.exec(line)?.[1] ?? '')
    .filter((address) => net.isIP(address) !== 0)
  const isLoopback = (address: string) => address.startsWith('127.') || address === '::1'
  return {
    routable: servers.filter((address) => !isLoopback(address) && net.isIPv4(address)),
    loopback: servers.filter(isLoopback),
  }
}

/** The resolvers for nodes on this host, and those that the gateway has to ask for them: all for nodes that have no way to an IPv4 address. */
export function hostResolvers({ text = readResolvConf(), onlyIPv6 = false } = {}): { nameservers: string[]; forwardDns: string[] } {
  const { routable, loopback } = parseResolvConf(text)
  if (onlyIPv6) return { nameservers: [], forwardDns: [...routable, ...loopback] }
  if (routable.length > 0) return { nameservers: routable, forwardDns: [] }
  return { nameservers: [], forwardDns: loopback }
}

function readResolvConf(): string {
  try {
    return readFileSync('/etc/resolv.conf', 'utf8')
  } catch {
    return ''
  }
}
