/** Converts between ethernet specs and statuses and the kernel's ethtool data. */
import type { SpecOf } from '../../../cosi/resource.ts'
import type { Ethernet, EthernetChange, EthernetFeatures, EthernetRings } from '../../../linux/net/ethtool.ts'
import type { EthernetSpec, EthernetStatus } from '../resources/ethernet.ts'

type Spec = SpecOf<typeof EthernetSpec>
type Status = SpecOf<typeof EthernetStatus>

/** Ring settings in specs, and the kernel's names for them. */
const ringKeys = {
  'rx-max': 'rxMax',
  'rx-mini-max': 'rxMiniMax',
  'rx-jumbo-max': 'rxJumboMax',
  'tx-max': 'txMax',
  'tx-push-buf-len-max': 'txPushBufLenMax',
  rx: 'rx',
  'rx-mini': 'rxMini',
  'rx-jumbo': 'rxJumbo',
  tx: 'tx',
  'rx-buf-len': 'rxBufLen',
  'cqe-size': 'cqeSize',
  'tx-push': 'txPush',
  'rx-push': 'rxPush',
  'tx-push-buf-len': 'txPushBufLen',
  'tcp-data-split': 'tcpDataSplit',
} as const satisfies Record<string, keyof EthernetRings>

const channelKeys = {
  'rx-max': 'rxMax',
  'tx-max': 'txMax',
  'other-max': 'otherMax',
  'combined-max': 'combinedMax',
  rx: 'rx',
  tx: 'tx',
  other: 'other',
  combined: 'combined',
} as const

const duplexes: Readonly<Record<number, string>> = { 0: 'Half', 1: 'Full' }
const ports: Readonly<Record<number, string>> = {
  0: 'TwistedPair',
  1: 'AUI',
  2: 'MII',
  3: '',
  4: 'BNC',
  5: 'DirectAttach',
  239: 'None',
}

/** The ethernet status of a network interface. */
export function statusOf({ linkUp, port, speed, duplex, ours, peer, rings, channels, wake, features, featureNames }: Ethernet): Status {
  const names = (bits: Ethernet['ours']) => bits.flatMap(({ name, on }) => (on ? [name] : []))
  return {
    ...(linkUp !== undefined && { linkState: linkUp }),
    ...(speed !== undefined && { speedMbit: speed }),
    port: ports[port ?? 255] ?? 'Other',
    duplex: duplexes[duplex ?? 255] ?? 'Unknown',
    ...(names(ours).length > 0 && { ourModes: names(ours) }),
    ...(names(peer).length > 0 && { peerModes: names(peer) }),
    ...(rings && Object.keys(rings).length > 0 && { rings: renamed(ringKeys, rings) }),
    ...(features && { features: shownFeatures(features, featureNames) }),
    ...(channels && Object.keys(channels).length > 0 && { channels: renamed(channelKeys, channels) }),
    ...(wake && wake.length > 0 && { wakeOnLAN: wake.filter((mode) => mode !== 'arp') }),
  }
}

/** Renames fields to the keys of the status. Undefined fields are left out. */
function renamed<T extends object>(keys: Readonly<Record<string, string>>, values: object): T {
  const given = values as Record<string, number | boolean>
  const pairs = Object.entries(keys).flatMap(([shown, key]) => (given[key] === undefined ? [] : [[shown, given[key]]]))
  return Object.fromEntries(pairs) as T
}

function shownFeatures({ changeable, requested, active, fixed }: EthernetFeatures, names: readonly string[]): Record<string, string> {
  const shown = (name: string) => {
    const on = active.has(name)
    const state = on ? 'on' : 'off'
    if (!changeable.has(name) || fixed.has(name)) return `${state} [fixed]`
    return requested.has(name) === on ? state : `${state} [requested ${on ? 'off' : 'on'}]`
  }
  return Object.fromEntries(names.flatMap((name) => (name === '' ? [] : [[name, shown(name)]])))
}

/** The settings to send to the driver. Unsupported ones are added to `problems`. */
export function changeOf(spec: Spec, present: Ethernet, problems: string[]): EthernetChange {
  const rings = differing(ringKeys, spec.rings, present.rings, 'rings', problems)
  const channels = differing(channelKeys, spec.channels, present.channels, 'channels', problems)
  const features = changedFeatures(spec.features, present, problems)
  return {
    ...(features && { features }),
    ...(rings && { rings }),
    ...(channels && { channels }),
    ...(spec.wakeOnLan && changedWake(spec.wakeOnLan, present.wake, problems)),
  }
}

function differing<T extends object>(
  keys: Readonly<Record<string, string>>,
  desired: Readonly<Record<string, unknown>> | undefined,
  present: T | undefined,
  what: string,
  problems: string[],
): T | undefined {
  const settings = Object.entries(desired ?? {}).flatMap(([key, value]) =>
    value === undefined ? [] : [[keys[key] ?? key, value] as const],
  )
  if (settings.length === 0) return undefined
  if (!present) {
    problems.push(`${what}: its driver has no such settings: leave them out`)
    return undefined
  }
  const there = present as Record<string, unknown>
  const changed = settings.filter(([key, value]) => there[key] !== value)
  return changed.length === 0 ? undefined : (Object.fromEntries(changed) as T)
}

function changedFeatures(desired: Spec['features'], present: Ethernet, problems: string[]): Record<string, boolean> | undefined {
  const changed: Record<string, boolean> = {}
  const { features, featureNames } = present
  for (const [name, on] of Object.entries(desired ?? {})) {
    if (!featureNames.includes(name))
      problems.push(`feature "${name}" is not known to this kernel: see its EthernetStatus for those that are`)
    else if (!features) problems.push(`feature "${name}": its driver has no features to set`)
    else if (!features.changeable.has(name) || features.fixed.has(name)) {
      if (features.active.has(name) !== on) problems.push(`feature "${name}" is fixed ${on ? 'off' : 'on'}: leave it out`)
    } else if (features.requested.has(name) !== on) changed[name] = on
  }
  return Object.keys(changed).length === 0 ? undefined : changed
}

function changedWake(desired: readonly string[], present: readonly string[] | undefined, problems: string[]): { wake?: string[] } {
  if (!present) {
    if (desired.length > 0) problems.push('wake on LAN: its driver cannot wake the machine: leave it out')
    return {}
  }
  return Bun.deepEquals(desired.toSorted(), present.toSorted()) ? {} : { wake: [...desired] }
}
