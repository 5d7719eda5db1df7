/** Decodes nftables over nfnetlink (linux/netfilter/nf_tables.h): chains of a table, and the comments of its rules. */
import { DecodeError } from '../decode-error.ts'
import { AttributeReader, text } from './attributes.ts'

/** Message types: the subsystem in the upper byte, the message in the lower one. */
const subsystem = 10
export const nftablesMessage = { newChain: 0xa03, getChain: 0xa04, newRule: 0xa06, getRule: 0xa07 } as const

/** The multicast group of all changes. */
export const nftablesGroup = 7

/** A chain of a table; one without a hook is only jumped to. */
export interface FilterChain {
  readonly table: string
  readonly name: string
  readonly type?: string | undefined
  readonly hook?: number | undefined
  readonly priority?: number | undefined
  /** 0 drops, 1 accepts. */
  readonly policy?: number | undefined
}

/** A rule, identified by its comment. */
export interface FilterRule {
  readonly table: string
  readonly chain: string
  readonly comment: string
}

const headerLength = 4 // struct nfgenmsg
const inet = 1 // NFPROTO_INET: both families of IP
const tableName = 1 // in chains, rules, sets and tables alike
const NFTA_CHAIN = { name: 3, hook: 4, policy: 5, type: 7 } as const
const NFTA_HOOK = { number: 1, priority: 2 } as const
const NFTA_RULE = { chain: 2, userData: 7 } as const
const commentData = 0

/** Encodes a query for the contents of a table of family inet. */
export const writeTableQuery = (table: string): Uint8Array => Buffer.concat([Buffer.of(inet, 0, 0, 0), text(tableName, table)])

function attributesOf(body: Uint8Array, what: string): AttributeReader {
  if (body.length < headerLength) throw new DecodeError(what, 0, `${body.length} bytes`)
  return new AttributeReader(body.subarray(headerLength), what, headerLength)
}

/** Decodes a chain. */
export function readFilterChain(body: Uint8Array): FilterChain {
  const chain = attributesOf(body, 'nftables chain')
  const hook = chain.nested(NFTA_CHAIN.hook)
  const priority = hook?.be32(NFTA_HOOK.priority)
  return {
    table: chain.text(tableName) ?? '',
    name: chain.text(NFTA_CHAIN.name) ?? '',
    type: chain.text(NFTA_CHAIN.type),
    hook: hook?.be32(NFTA_HOOK.number),
    priority: priority === undefined ? undefined : priority | 0,
    policy: chain.be32(NFTA_CHAIN.policy),
  }
}

/** Decodes a rule. */
export function readFilterRule(body: Uint8Array): FilterRule {
  const rule = attributesOf(body, 'nftables rule')
  return { table: rule.text(tableName) ?? '', chain: rule.text(NFTA_RULE.chain) ?? '', comment: commentOf(rule.bytes(NFTA_RULE.userData)) }
}

/** The table of a change notification; undefined when it has none. */
export function changedTable({ type, body }: { type: number; body: Uint8Array }): string | undefined {
  if (type >> 8 !== subsystem || body[0] !== inet) return undefined
  return attributesOf(body, 'nftables change').text(tableName)
}

/** User data is a list of type, length and bytes; nft(8) stores its comment there. */
function commentOf(data: Uint8Array | undefined): string {
  for (let at = 0; data && at + 2 <= data.length; ) {
    const [kind, length = 0] = data.subarray(at)
    const piece = data.subarray(at + 2, at + 2 + length)
    if (kind === commentData) return Buffer.from(piece.at(-1) === 0 ? piece.subarray(0, -1) : piece).toString()
    at += 2 + length
  }
  return ''
}
