/** Rules by which a client subscribes to signals (D-Bus specification, "Match Rules"). */
import type { DbusHeader } from './message.ts'

/** Keys and the values that a signal must have. */
export type MatchRule = ReadonlyMap<string, string>

/** Parses `type='signal',member='X'`: `''` and other text without a pair match every signal. A backslash is literal, as inside quotes. */
export function parseMatchRule(text: string): MatchRule {
  return new Map([...text.matchAll(/(\w+)='([^']*)'/g)].map(([, key = '', value = '']) => [key, value]))
}

/** Whether a rule selects a signal. Keys about arguments are not compared: a client that gets too much ignores it. */
export function matchesRule(rule: MatchRule, signal: DbusHeader): boolean {
  const compared = {
    type: signal.type,
    sender: signal.sender,
    interface: signal.interface,
    member: signal.member,
    path: signal.path,
  }
  return Object.entries(compared).every(([key, value]) => !rule.has(key) || rule.get(key) === value)
}
