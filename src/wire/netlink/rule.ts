/** Routing rules of rtnetlink(7): struct fib_rule_hdr and its attributes (linux/fib_rules.h). */
import { DecodeError } from '../decode-error.ts'
import { formatIp } from '../ip.ts'
import { tryPrefix } from '../prefix.ts'
import { AttributeReader, attribute, text, u8, u32 } from './attributes.ts'

/** Message types of rules. */
export const ruleMessage = { new: 32, del: 33, get: 34 } as const

/** The actions of a rule. */
const ruleAction = { toTable: 1, goto: 2, nop: 3, blackhole: 6, unreachable: 7, prohibit: 8 } as const

/** A routing rule. */
export interface Rule {
  family: number
  source?: string | undefined
  destination?: string | undefined
  table: number
  priority: number
  action: number
  inputLink?: string | undefined
  outputLink?: string | undefined
  mark?: number | undefined
  mask?: number | undefined
  tos: number
  protocol?: number | undefined
  suppressPrefixLength?: number | undefined
  flags: number
}

const FRA = {
  dst: 1,
  src: 2,
  iifname: 3,
  priority: 6,
  fwmark: 10,
  suppressPrefixlen: 14,
  table: 15,
  fwmask: 16,
  oifname: 17,
  protocol: 21,
} as const
const headerLength = 12

/** Decodes a rule message. */
export function readRule(body: Uint8Array): Rule {
  if (body.length < headerLength) throw new DecodeError('rule', 0, `${body.length} bytes`)
  const view = new DataView(body.buffer, body.byteOffset, body.byteLength)
  const reader = new AttributeReader(body.subarray(headerLength), 'rule', headerLength)
  const prefix = (type: number, length: number) => {
    const bytes = reader.bytes(type)
    return bytes && `${formatIp(bytes)}/${length}`
  }
  return {
    family: view.getUint8(0),
    destination: prefix(FRA.dst, view.getUint8(1)),
    source: prefix(FRA.src, view.getUint8(2)),
    tos: view.getUint8(3),
    table: reader.u32(FRA.table) ?? view.getUint8(4),
    action: view.getUint8(7),
    flags: view.getUint32(8, true),
    priority: reader.u32(FRA.priority) ?? 0,
    inputLink: reader.text(FRA.iifname),
    outputLink: reader.text(FRA.oifname),
    mark: reader.u32(FRA.fwmark),
    mask: reader.u32(FRA.fwmask),
    protocol: reader.u8(FRA.protocol),
    suppressPrefixLength: reader.i32(FRA.suppressPrefixlen),
  }
}

/** Encodes a rule message; the default family is that of its prefixes. */
export function writeRule(rule: Partial<Rule>): Uint8Array {
  const prefix = (given: string | undefined) => {
    const parsed = given === undefined ? undefined : tryPrefix(given)
    if (given !== undefined && !parsed) throw new RangeError(`"${given}" is no prefix`)
    return parsed
  }
  const destination = prefix(rule.destination)
  const source = prefix(rule.source)
  const family = rule.family ?? ((destination ?? source)?.bytes.length === 16 ? 10 : 2)
  const { table = 254, action = ruleAction.toTable } = rule
  const header = Buffer.alloc(headerLength)
  header.set([family, destination?.bits ?? 0, source?.bits ?? 0, rule.tos ?? 0, table > 255 ? 0 : table, 0, 0, action])
  header.writeUInt32LE(rule.flags ?? 0, 8)
  const parts: Uint8Array[] = [header]
  if (destination) parts.push(attribute(FRA.dst, destination.bytes))
  if (source) parts.push(attribute(FRA.src, source.bytes))
  if (rule.inputLink) parts.push(text(FRA.iifname, rule.inputLink))
  if (rule.outputLink) parts.push(text(FRA.oifname, rule.outputLink))
  if (rule.priority !== undefined) parts.push(u32(FRA.priority, rule.priority))
  if (rule.mark !== undefined) parts.push(u32(FRA.fwmark, rule.mark))
  if (rule.mask !== undefined) parts.push(u32(FRA.fwmask, rule.mask))
  if (rule.suppressPrefixLength !== undefined) parts.push(u32(FRA.suppressPrefixlen, rule.suppressPrefixLength))
  if (rule.protocol !== undefined) parts.push(u8(FRA.protocol, rule.protocol))
  parts.push(u32(FRA.table, table))
  return Buffer.concat(parts)
}
