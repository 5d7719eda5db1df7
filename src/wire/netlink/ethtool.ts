/**
 * Settings of network interfaces over generic netlink (linux/ethtool_netlink.h): link, speed, rings, channels, features,
 * wake-on-LAN. An interface that lacks one of them refuses only that request.
 */
import { AttributeReader, attribute, nested, readAttributes, text, u8, u32 } from './attributes.ts'
import { readGeneric, writeGeneric } from './generic.ts'

/** The family's name. */
export const ethtoolFamily = 'ethtool'

/** Messages to the kernel. */
export const ethtoolMessage = {
  strings: 1,
  linkInfo: 2,
  linkModes: 4,
  linkState: 6,
  wake: 9,
  setWake: 10,
  features: 11,
  setFeatures: 12,
  rings: 15,
  setRings: 16,
  channels: 17,
  setChannels: 18,
} as const

const version = 1
const ETHTOOL_A_HEADER = 1
const ETHTOOL_A_HEADER_DEV_INDEX = 1
const ETHTOOL_A_BITSET = { noMask: 1, size: 2, bits: 3 } as const
const ETHTOOL_A_BITSET_BIT = { index: 1, name: 2, value: 3 } as const
const featureStrings = 4 // ETH_SS_FEATURES
const mostBits = 4096

/** Bits by name, in their order. */
export interface NamedBit {
  index: number
  name: string
  on: boolean
}

/** Rings as reported by the kernel; undefined where the interface has none. */
export interface EthernetRings {
  rxMax?: number
  rxMiniMax?: number
  rxJumboMax?: number
  txMax?: number
  rx?: number
  rxMini?: number
  rxJumbo?: number
  tx?: number
  rxBufLen?: number
  tcpDataSplit?: boolean
  cqeSize?: number
  txPush?: boolean
  rxPush?: boolean
  txPushBufLen?: number
  txPushBufLenMax?: number
}

/** Channels as reported by the kernel. */
export interface EthernetChannels {
  rxMax?: number
  txMax?: number
  otherMax?: number
  combinedMax?: number
  rx?: number
  tx?: number
  other?: number
  combined?: number
}

/** Attribute numbers; a change writes the writable ones. */
const ringNumbers = {
  rxMax: 2,
  rxMiniMax: 3,
  rxJumboMax: 4,
  txMax: 5,
  rx: 6,
  rxMini: 7,
  rxJumbo: 8,
  tx: 9,
  rxBufLen: 10,
  cqeSize: 12,
  txPushBufLen: 15,
  txPushBufLenMax: 16,
} as const
const ringFlags = { txPush: 13, rxPush: 14 } as const
const tcpDataSplit = 11 // 1 off, 2 on
const channelNumbers = { rxMax: 2, txMax: 3, otherMax: 4, combinedMax: 5, rx: 6, tx: 7, other: 8, combined: 9 } as const

/** Encodes a query about a link. */
export function writeEthtoolQuery(message: number, index: number): Uint8Array {
  return writeGeneric(message, version, [header(index)])
}

const header = (index: number) => nested(ETHTOOL_A_HEADER, [u32(ETHTOOL_A_HEADER_DEV_INDEX, index)])

const reading = (body: Uint8Array) => readGeneric(body, 'ethtool').attributes

/** Encodes a query for the names of all features, in the order of their bits. */
export function writeFeatureNamesQuery(): Uint8Array {
  return writeGeneric(ethtoolMessage.strings, version, [nested(ETHTOOL_A_HEADER, []), nested(2, [nested(1, [u32(1, featureStrings)])])])
}

/** Decodes the names of all features. */
export function readFeatureNames(body: Uint8Array): string[] {
  const names: string[] = []
  for (const { value } of reading(body).list(2)) {
    const set = new AttributeReader(value, 'ethtool strings')
    if (set.u32(1) !== featureStrings) continue
    for (const one of set.list(3)) {
      const string = new AttributeReader(one.value, 'ethtool string')
      const index = string.u32(1) ?? 0
      if (index < mostBits) names[index] = string.text(2) ?? ''
    }
  }
  return Array.from(names, (name) => name ?? '')
}

/** Decodes the port type (PORT_…). */
export const readLinkInfo = (body: Uint8Array): { port?: number | undefined } => ({ port: reading(body).u8(2) })

/** Decodes the supported link modes, those of the peer, speed and duplex; unknown values are absent. */
export function readLinkModes(body: Uint8Array): { ours: NamedBit[]; peer: NamedBit[]; speed?: number; duplex?: number | undefined } {
  const attributes = reading(body)
  const speed = attributes.u32(5)
  return {
    ours: bitsOf(attributes, 3),
    peer: bitsOf(attributes, 4),
    ...(!(speed === undefined || speed === 0xffffffff) && { speed }),
    duplex: attributes.u8(6),
  }
}

/** Decodes whether the link is up. */
export const readLinkState = (body: Uint8Array): { up?: boolean | undefined } => {
  const up = reading(body).u8(2)
  return { up: up === undefined ? undefined : up !== 0 }
}

/** Features: changeable, requested, active, and fixed ones. */
export interface EthernetFeatures {
  changeable: Set<string>
  requested: Set<string>
  active: Set<string>
  fixed: Set<string>
}

/** Decodes features. */
export function readFeatures(body: Uint8Array): EthernetFeatures {
  const attributes = reading(body)
  const set = (type: number) => new Set(bitsOf(attributes, type).flatMap(({ name, on }) => (on ? [name] : [])))
  return { changeable: set(2), requested: set(3), active: set(4), fixed: set(5) }
}

/** Requests features on or off; those that are not named stay. */
export function writeFeatures(index: number, requested: Readonly<Record<string, boolean>>): Uint8Array {
  const bits = Object.entries(requested).map(([name, on]) =>
    nested(1, [text(ETHTOOL_A_BITSET_BIT.name, name), ...(on ? [attribute(ETHTOOL_A_BITSET_BIT.value, new Uint8Array())] : [])]),
  )
  return writeGeneric(ethtoolMessage.setFeatures, version, [header(index), nested(3, [nested(ETHTOOL_A_BITSET.bits, bits)])])
}

/** Decodes rings. */
export function readRings(body: Uint8Array): EthernetRings {
  const attributes = reading(body)
  const rings: Record<string, number | boolean> = {}
  for (const [name, type] of Object.entries(ringNumbers)) put(rings, name, attributes.u32(type))
  for (const [name, type] of Object.entries(ringFlags)) put(rings, name, flagOf(attributes.u8(type)))
  const split = attributes.u8(tcpDataSplit)
  if (split) rings.tcpDataSplit = split === 2
  return rings
}

const flagOf = (value: number | undefined) => (value === undefined ? undefined : value !== 0)

function put(into: Record<string, number | boolean>, name: string, value: number | boolean | undefined): void {
  if (value !== undefined) into[name] = value
}

/** Changes rings. */
export function writeRings(index: number, rings: EthernetRings): Uint8Array {
  const attributes = numbersOf(ringNumbers, rings)
  for (const [name, type] of Object.entries(ringFlags)) {
    const value = rings[name as keyof typeof ringFlags]
    if (value !== undefined) attributes.push(u8(type, Number(value)))
  }
  if (rings.tcpDataSplit !== undefined) attributes.push(u8(tcpDataSplit, rings.tcpDataSplit ? 2 : 1))
  return writeGeneric(ethtoolMessage.setRings, version, [header(index), ...attributes])
}

function numbersOf(numbers: Readonly<Record<string, number>>, values: object): Uint8Array[] {
  return Object.entries(numbers).flatMap(([name, type]) => {
    const value = (values as Record<string, unknown>)[name]
    return typeof value === 'number' && !name.endsWith('Max') ? [u32(type, value)] : []
  })
}

/** Decodes channels. */
export function readChannels(body: Uint8Array): EthernetChannels {
  const attributes = reading(body)
  const channels: Record<string, number | boolean> = {}
  for (const [name, type] of Object.entries(channelNumbers)) put(channels, name, attributes.u32(type))
  return channels
}

/** Changes channels. */
export function writeChannels(index: number, channels: EthernetChannels): Uint8Array {
  return writeGeneric(ethtoolMessage.setChannels, version, [header(index), ...numbersOf(channelNumbers, channels)])
}

/** Wake-up sources, by the bits of WAKE_…; `arp` has no name in the configuration. */
const wakeModes = ['phy', 'unicast', 'multicast', 'broadcast', 'arp', 'magic', 'magicsecure', 'filter'] as const

/** Decodes the active wake-up sources. */
export const readWake = (body: Uint8Array): string[] =>
  bitsOf(reading(body), 2).flatMap(({ index, on }) => (on && wakeModes[index] ? [wakeModes[index]] : []))

/** Sets the active wake-up sources. */
export function writeWake(index: number, modes: readonly string[]): Uint8Array {
  const bits = modes.map((mode) => {
    const bit = wakeModes.indexOf(mode as (typeof wakeModes)[number])
    if (bit < 0) throw new RangeError(`"${mode}" cannot wake a machine: use one of ${wakeModes.join(', ')}`)
    return nested(1, [u32(ETHTOOL_A_BITSET_BIT.index, bit)])
  })
  // Without a mask the named bits replace all others.
  const set = nested(2, [
    attribute(ETHTOOL_A_BITSET.noMask, new Uint8Array()),
    u32(ETHTOOL_A_BITSET.size, wakeModes.length),
    nested(ETHTOOL_A_BITSET.bits, bits),
  ])
  return writeGeneric(ethtoolMessage.setWake, version, [header(index), set])
}

/** The bits of a bit set in its verbose form: with a mask those in it, on or off; without one those that are on. */
function bitsOf(attributes: AttributeReader, type: number): NamedBit[] {
  const set = attributes.nested(type)
  if (!set) return []
  const all = set.has(ETHTOOL_A_BITSET.noMask)
  const bytes = set.bytes(ETHTOOL_A_BITSET.bits)
  if (!bytes) return []
  return readAttributes(bytes, 'ethtool bits')
    .slice(0, mostBits)
    .map(({ value }) => {
      const bit = new AttributeReader(value, 'ethtool bit')
      return {
        index: bit.u32(ETHTOOL_A_BITSET_BIT.index) ?? 0,
        name: bit.text(ETHTOOL_A_BITSET_BIT.name) ?? '',
        on: all || bit.has(ETHTOOL_A_BITSET_BIT.value),
      }
    })
}
