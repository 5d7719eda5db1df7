/** Renders chains as an nft(8) script that replaces our table in one transaction: at no moment is a rule missing. */
import type { SpecOf } from '../../../cosi/resource.ts'
import { containsAddress, isIPv6, parsePrefix } from '../../../wire/prefix.ts'
import type { NfTablesChain } from '../resources/nf-tables-chain.ts'
import type { DesiredFilter } from './filter-state.ts'

type Chain = SpecOf<typeof NfTablesChain>
type Rule = NonNullable<Chain['rules']>[number]
type Addresses = NonNullable<Rule['matchSourceAddress']>
type Family = 4 | 6

/** The table owned by this system; all others belong to other programs. */
export const tableName = 'talos'

const priorities: Readonly<Record<string, number>> = {
  first: -0x80000000,
  'conntrack-defrag': -400,
  raw: -300,
  'selinux-first': -225,
  conntrack: -200,
  mangle: -150,
  'nat-dest': -100,
  filter: 0,
  security: 50,
  'nat-source': 100,
  'selinux-last': 225,
  'conntrack-helper': 300,
  last: 0x7fffffff,
}

/** A script, and the state by which its table is recognized later. */
export interface NftScript extends DesiredFilter {
  readonly text: string
}

/** Renders the script that replaces the table's content by these chains. Without chains it deletes the table. */
export function nftScript(chains: ReadonlyMap<string, Chain>): NftScript {
  // Deleting a missing table fails, so the script creates it first: the same script works in both cases.
  const clear = `table inet ${tableName}\ndelete table inet ${tableName}\n`
  if (chains.size === 0) return { text: clear, chains: new Map() }
  const drafts = [...chains].map(([name, chain]) => {
    const priority = priorities[chain.priority] ?? Number(chain.priority)
    if (!Number.isInteger(priority)) throw new RangeError(`chain "${name}": "${chain.priority}" is not a priority`)
    const head = `type ${word(chain.type)} hook ${word(chain.hook)} priority ${priority}; policy ${word(chain.policy)};`
    return { name: word(name), chain, priority, head, lines: (chain.rules ?? []).flatMap((rule) => rulesOf(rule)) }
  })
  // A rule's comment contains the digest of the whole ruleset, so that stale or foreign rules are detected.
  const whole = new Bun.CryptoHasher('sha256').update(JSON.stringify(drafts.map(({ name, head, lines }) => [name, head, lines])))
  const digest = whole.digest('hex').slice(0, 12)
  const wanted = new Map<string, DesiredFilter['chains'] extends ReadonlyMap<string, infer C> ? C : never>()
  const blocks = drafts.map(({ name, chain: { type, hook, policy }, priority, head, lines }) => {
    const rules = lines.map((_, index) => `${digest} ${index + 1} of ${lines.length}`)
    wanted.set(name, { type, hook, policy, priority, rules })
    const commented = lines.map((line, index) => `${line} comment "${rules[index]}"`)
    return `  chain ${name} {\n${[head, ...commented].map((line) => `    ${line}\n`).join('')}  }\n`
  })
  return { text: `${clear}table inet ${tableName} {\n${blocks.join('')}}\n`, chains: wanted }
}

/** Checks a token before it enters the script. Enums come from schemas, but link names come from the machine. */
function word(text: string): string {
  if (!/^[a-z0-9][a-z0-9_.-]*$/i.test(text)) throw new RangeError(`"${text}" is not a token of a packet filter`)
  return text
}

const quoted = (name: string) => {
  if (!/^[^\s"\\/]{1,15}$/.test(name)) throw new RangeError(`"${name}" is not a link name`)
  return `"${name}"`
}

/** Renders one rule as one or more lines: each line matches one address family, and an inverted set with exceptions needs its own line. */
function rulesOf(rule: Rule): string[] {
  const families: (Family | undefined)[] = rule.matchSourceAddress || rule.matchDestinationAddress ? [4, 6] : [undefined]
  const lines: string[] = []
  for (const family of families) {
    const sources = family && rule.matchSourceAddress ? addressMatches('saddr', rule.matchSourceAddress, family) : ['']
    const destinations = family && rule.matchDestinationAddress ? addressMatches('daddr', rule.matchDestinationAddress, family) : ['']
    for (const source of sources)
      for (const destination of destinations) {
        const line = [...links(rule), source, destination, ...layer4(rule, family), ...rest(rule, family)]
          .filter((part) => part !== '')
          .join(' ')
        if (line !== '') lines.push(line)
      }
  }
  return [...new Set(lines)]
}

function links({ matchIIfName, matchOIfName }: Rule): string[] {
  const match = (what: string, given: Rule['matchIIfName']) =>
    given && given.interfaceName.length > 0
      ? [`${what} ${given.operator === '!=' ? '!= ' : ''}{ ${given.interfaceName.map(quoted).join(', ')} }`]
      : []
  return [...match('iifname', matchIIfName), ...match('oifname', matchOIfName)]
}

/** Alternative address matches for a family; none if the rule cannot match it. */
function addressMatches(
  which: 'saddr' | 'daddr',
  { includeSubnets = [], excludeSubnets = [], invert = false }: Addresses,
  family: Family,
): string[] {
  const field = `${family === 4 ? 'ip' : 'ip6'} ${which}`
  const own = (list: readonly string[]) => distinct(list.filter((subnet) => isIPv6(subnet) === (family === 6)))
  const [into, out] = [own(includeSubnets), own(excludeSubnets)]
  const within = includeSubnets.length > 0
  const anyone = `meta nfproto ipv${family}`
  if (invert) {
    const outside = into.length > 0 ? [`${field} != ${set(into)}`] : within ? [anyone] : []
    return [...outside, ...(out.length > 0 ? [`${field} ${set(out)}`] : [])]
  }
  if (within && into.length === 0) return []
  const parts = [into.length > 0 ? `${field} ${set(into)}` : anyone, ...(out.length > 0 ? [`${field} != ${set(out)}`] : [])]
  return [parts.join(' ')]
}

/** Drops subnets contained in others: the kernel rejects sets with overlapping members. */
function distinct(subnets: readonly string[]): string[] {
  const parsed = [...new Set(subnets)].map((text) => ({ text, prefix: parsePrefix(text) })).sort((a, b) => a.prefix.bits - b.prefix.bits)
  const kept: typeof parsed = []
  for (const one of parsed) if (!kept.some(({ prefix }) => containsAddress(prefix, one.text))) kept.push(one)
  return kept.map(({ text }) => text)
}

const set = (members: readonly (string | number)[]) => `{ ${members.join(', ')} }`

function layer4({ matchLayer4 }: Rule, family: Family | undefined): string[] {
  if (!matchLayer4) return []
  const { protocol, matchSourcePort, matchDestinationPort, matchICMPType } = matchLayer4
  const ports = (field: string, ranges: { lo: number; hi: number }[] = []) =>
    ranges.length > 0 ? [`${word(protocol)} ${field} ${set(ranges.map(({ lo, hi }) => (lo === hi ? lo : `${lo}-${hi}`)))}`] : []
  const parts = [...ports('sport', matchSourcePort?.ranges), ...ports('dport', matchDestinationPort?.ranges)]
  if (matchICMPType && matchICMPType.types.length > 0) parts.push(`${word(protocol)} type ${set(matchICMPType.types)}`)
  if (parts.length > 0) return parts
  const number = { icmp: 1, tcp: 6, udp: 17, icmpv6: 58 }[protocol]
  if (number === undefined) throw new RangeError(`"${protocol}" is not a protocol of a packet filter`)
  return family === undefined || parts.length === 0 ? [`meta l4proto ${number}`] : []
}

function rest(
  { matchConntrackState, matchMark, matchLimit, clampMSS, setMark, anonymousCounter, verdict }: Rule,
  family?: Family,
): string[] {
  const parts: string[] = []
  if (matchConntrackState) parts.push(`ct state ${set(matchConntrackState.states.map(word))}`)
  if (matchMark) parts.push(`meta mark ${bits(matchMark)}== ${hex(matchMark.value)}`)
  if (matchLimit) parts.push(`limit rate ${matchLimit.packetRatePerSecond}/second`)
  // IP and TCP headers take 40 bytes, 60 with IPv6. The kernel only ever lowers the option.
  if (clampMSS) parts.push(`tcp flags syn tcp option maxseg size set ${clampMSS.mtu - (family === 4 ? 40 : 60)}`)
  if (setMark) parts.push(`meta mark set meta mark ${bits(setMark)}`.trim())
  if (anonymousCounter) parts.push('counter')
  if (verdict) parts.push(word(verdict))
  return parts
}

const hex = (value = 0) => `0x${value.toString(16)}`
const bits = ({ mask = 0xffffffff, xor = 0 }: { mask?: number | undefined; xor?: number | undefined }) =>
  `and ${hex(mask)} ${xor ? `xor ${hex(xor)} ` : ''}`
