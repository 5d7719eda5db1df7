/** Compares the kernel's packet filter with the desired one. Each of our rules has a comment with its position in the ruleset. */
import type { FilterChain, FilterRule } from '../../../linux/net/nftables.ts'

/** The desired content of a table. */
export interface DesiredFilter {
  /** By chain name. A rule is identified by its comment. */
  readonly chains: ReadonlyMap<string, { type: string; hook: string; priority: number; policy: string; rules: readonly string[] }>
}

/** NF_INET_* of linux/netfilter.h. */
const hooks: Readonly<Record<string, number>> = { prerouting: 0, input: 1, forward: 2, output: 3, postrouting: 4 }
const policies: Readonly<Record<string, number>> = { drop: 0, accept: 1 }

/** True if the table has exactly these chains with exactly these rules, in this order. */
export function stands(
  { chains: wanted }: DesiredFilter,
  { chains, rules }: { chains: readonly FilterChain[]; rules: readonly FilterRule[] },
): boolean {
  if (chains.length !== wanted.size) return false
  return chains.every(({ name, type, hook, priority, policy }) => {
    const desired = wanted.get(name)
    if (
      !desired ||
      desired.type !== type ||
      hooks[desired.hook] !== hook ||
      desired.priority !== priority ||
      policies[desired.policy] !== policy
    )
      return false
    return Bun.deepEquals(
      rules.filter(({ chain }) => chain === name).map(({ comment }) => comment),
      [...desired.rules],
    )
  })
}
