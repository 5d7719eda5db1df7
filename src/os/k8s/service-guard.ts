import { runProgram } from '../../supervise/run-program.ts'
import { isIPv6 } from '../../wire/prefix.ts'
import type { Machine } from '../area.ts'

const table = 'ichor-services'
const timeout = 10_000

/**
 * Rules for nft(8) that drop packets of pods to services that were not translated, after all other filters. Such packets must not
 * leave the node: they would be lost, and the kernel would keep the connection as one that needs no translation. A dropped packet
 * is sent again a second later as the first of its connection, and by then kube-proxy may have set its rules.
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

/** Passes rules to nft(8). Rejects with its output when it refuses, or when it takes too long. */
export async function setServiceGuard(spawn: Machine['spawn'], script: string): Promise<void> {
  await runProgram({ spawn }, ['/usr/sbin/nft', script], { timeout, purpose: 'set rules for services: nft' })
}
