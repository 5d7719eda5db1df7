import { isIPv6 } from '../../wire/prefix.ts'
import type { Machine } from '../area.ts'

const table = 'ichor-services'
const patience = 10_000

/**
 * Rules for nft(8): what pods send to services while nobody has translated it is dropped, after all other filters had their
 * say. It must not leave the node: it would only get lost there, and the kernel would remember the connection as one that
 * needs no translation. Dropped here it is sent again a second later, as if for the first time, and by then the node's proxy
 * may be there.
 */
export function serviceGuard(serviceSubnets: readonly string[]): string {
  const rule = (family: string, prefixes: readonly string[]) =>
    prefixes.length > 0 ? [`iifname "cni0" ${family} daddr { ${prefixes.join(', ')} } drop`] : []
  const rules = [
    ...rule(
      'ip',
      serviceSubnets.filter((prefix) => !isIPv6(prefix)),
    ),
    ...rule('ip6', serviceSubnets.filter(isIPv6)),
  ]
  return [
    `table inet ${table}`,
    `delete table inet ${table}`,
    `table inet ${table} {`,
    'chain forward {',
    'type filter hook forward priority 10; policy accept;',
    ...rules,
    '}',
    '}',
    '',
  ].join('\n')
}

/** Hands rules to nft(8). Rejects with its words when it refuses, or when it takes too long. */
export async function setServiceGuard(spawn: Machine['spawn'], script: string): Promise<void> {
  const child = spawn({ argv: ['/usr/sbin/nft', script], env: {}, cwd: '/' })
  const timer = setTimeout(() => child.kill('SIGKILL'), patience)
  const said = await Promise.all(child.output.map((stream) => new Response(stream).text()))
  const { code, signal } = await child.exited
  clearTimeout(timer)
  if (code !== 0) throw new Error(`set rules for services: ${signal ? `nft was ended by ${signal}` : said.join('').trim().split('\n')[0]}`)
}
