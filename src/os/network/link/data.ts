/** Converts kind-specific link settings between specs and the kernel's numbers (IFLA_INFO_DATA). */
import type { SpecOf } from '../../../cosi/resource.ts'
import type { LinkData } from '../../../linux/net/rtnetlink.ts'
import { bondValues } from '../documents/bond.ts'
import type { LinkSpec, LinkStatus } from '../resources/link.ts'

type Spec = SpecOf<typeof LinkSpec>
type Bond = NonNullable<Spec['bondMaster']>
type Words = keyof typeof bondValues

const words: readonly Words[] = Object.keys(bondValues) as Words[]
const vlanProtocols: Record<string, number> = { '802.1q': 0x8100, '802.1ad': 0x88a8 } // ETH_P_8021Q, ETH_P_8021AD

/** Bond settings that are valid in some modes only; the kernel rejects them in the others. */
const onlyIn: Partial<Record<string, readonly string[]>> = {
  xmitHashPolicy: ['balance-xor', '802.3ad', 'balance-tlb', 'balance-alb'],
  lacpRate: ['802.3ad'],
  adLacpActive: ['802.3ad'],
  adSelect: ['802.3ad'],
  adActorSysPrio: ['802.3ad'],
  adUserPortKey: ['802.3ad'],
  primary: ['active-backup', 'balance-tlb', 'balance-alb'],
  primaryReselect: ['active-backup', 'balance-tlb', 'balance-alb'],
  failOverMac: ['active-backup'],
  packetsPerSlave: ['balance-rr'],
  tlbLogicalLb: ['balance-tlb', 'balance-alb'],
}
const onlyWithArp = new Set(['arpValidate', 'arpAllTargets', 'arpInterval', 'arpIpTargets', 'nsIp6Targets', 'missedMax'])

/** Bond settings for the kernel, limited to those of the bond's mode. */
export function bondData(bond: Bond): LinkData {
  const data: LinkData = {}
  for (const [name, value] of Object.entries(bond)) {
    if (value === undefined || (onlyIn[name] && !onlyIn[name].includes(bond.mode))) continue
    if (onlyWithArp.has(name) && !bond.arpInterval) continue
    if (typeof value === 'number' || Array.isArray(value)) data[name] = value
    else if (typeof value === 'boolean') data[name] = Number(value)
    else if (name === 'adLacpActive') data[name] = Number(value === 'on')
    else {
      const number = (bondValues[name as Words] as readonly string[] | undefined)?.indexOf(value) ?? -1
      if (number < 0) throw new RangeError(`bond setting "${name}": "${value}" is not known`)
      data[name] = number
    }
  }
  return data
}

/** Bond settings as shown in the status. */
function shownBond(data: LinkData): Bond {
  const word = (name: Words) => bondValues[name][Number(data[name])] ?? String(data[name] ?? '')
  const texts = Object.fromEntries(words.map((name) => [name, word(name)])) as Record<Words, string>
  const numbers = Object.fromEntries(
    ['primary', 'miimon', 'updelay', 'downdelay', 'arpInterval', 'resendIgmp', 'minLinks', 'lpInterval', 'packetsPerSlave', 'numPeerNotif']
      .concat(['tlbLogicalLb', 'allSlavesActive', 'adActorSysPrio', 'adUserPortKey', 'peerNotifyDelay', 'missedMax'])
      .flatMap((name) => (typeof data[name] === 'number' ? [[name, data[name]]] : [])),
  )
  const list = (name: string) => (Array.isArray(data[name]) && data[name].length > 0 ? { [name]: data[name] } : {})
  return {
    ...texts,
    ...numbers,
    useCarrier: data.useCarrier === 1,
    adLacpActive: data.adLacpActive === 1 ? 'on' : 'off',
    ...list('arpIpTargets'),
    ...list('nsIp6Targets'),
  }
}

/** Kind-specific settings for creating a link. */
export function linkData(spec: Spec): LinkData {
  if (spec.vlan) return { id: spec.vlan.vlanID, protocol: vlanProtocols[spec.vlan.vlanProtocol] ?? 0x8100 }
  if (spec.bondMaster) return bondData(spec.bondMaster)
  if (spec.bridgeMaster)
    return {
      stpState: Number(spec.bridgeMaster.stp?.enabled ?? false),
      vlanFiltering: Number(spec.bridgeMaster.vlan?.filteringEnabled ?? false),
    }
  if (spec.vrfMaster) return { table: Number(spec.vrfMaster.table) }
  return {}
}

/** The kind-specific part of a link status. */
export function shownData(
  kind: string,
  data: LinkData,
): Pick<SpecOf<typeof LinkStatus>, 'vlan' | 'bondMaster' | 'bridgeMaster' | 'vrfMaster'> {
  if (kind === 'vlan')
    return { vlan: { vlanID: Number(data.id ?? 0), vlanProtocol: data.protocol === vlanProtocols['802.1ad'] ? '802.1ad' : '802.1q' } }
  if (kind === 'bond') return { bondMaster: shownBond(data) }
  if (kind === 'bridge')
    return { bridgeMaster: { stp: { enabled: Number(data.stpState ?? 0) !== 0 }, vlan: { filteringEnabled: data.vlanFiltering === 1 } } }
  if (kind === 'vrf') return { vrfMaster: { table: String(data.table ?? 0) } }
  return {}
}

/** The desired settings that differ from the present ones. */
export function changedData(desired: LinkData, present: LinkData): LinkData {
  return Object.fromEntries(Object.entries(desired).filter(([name, value]) => !Bun.deepEquals(present[name] ?? absent(value), value)))
}

const absent = (value: LinkData[string]) => (Array.isArray(value) ? [] : undefined)
