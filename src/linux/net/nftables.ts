/** Reads a table of nftables and watches it for changes. */

import { failedWith } from '../../wire/errno.ts'
import {
  changedTable,
  type FilterChain,
  type FilterRule,
  nftablesGroup,
  nftablesMessage,
  readFilterChain,
  readFilterRule,
  writeTableQuery,
} from '../../wire/netlink/nftables.ts'
import { NetlinkSocket, netlinkProtocol, watchNetlink } from './netlink-socket.ts'

export type { FilterChain, FilterRule }

/** Chains of a table (family inet) and their rules, in order; empty where there is no such table, or no nftables. */
export function filterTable(table: string, { netns = '' } = {}): { chains: FilterChain[]; rules: FilterRule[] } {
  using socket = new NetlinkSocket(netlinkProtocol.netfilter, { netns })
  const query = writeTableQuery(table)
  try {
    const chains = socket.dump('list chains', nftablesMessage.getChain, query, table).map(({ body }) => readFilterChain(body))
    const rules = socket.dump('list rules', nftablesMessage.getRule, query, table).map(({ body }) => readFilterRule(body))
    const ours = (one: { table: string }) => one.table === table
    return { chains: chains.filter(ours), rules: rules.filter(ours) }
  } catch (error) {
    if (failedWith(error, 'ENOENT', 'EINVAL', 'EOPNOTSUPP', 'EPROTONOSUPPORT')) return { chains: [], rules: [] }
    throw error
  }
}

/** Yields at once and whenever the table changes, until the signal is aborted. */
export async function* watchFilterTable(table: string, options: { netns?: string; signal?: AbortSignal } = {}): AsyncGenerator<void> {
  for await (const event of watchNetlink(netlinkProtocol.netfilter, [nftablesGroup], options))
    if (event.lost || event.messages.some((message) => changedTable(message) === table)) yield
}
