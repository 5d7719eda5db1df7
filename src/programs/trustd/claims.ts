/**
 * Which of the names in a request belong to another machine. All workers share one token, so the token alone must not give
 * one of them another's name. The source address identifies the caller; only when it belongs to no member (a machine that
 * joins, or one behind NAT) the name in the request does, which never identifies a control plane. Names and addresses
 * of the cluster's endpoint belong to its control planes, including a virtual address: no member's record holds them.
 */
import { formatIp, parseIp } from '../../wire/ip.ts'

/** A machine of the cluster as its record has it. */
export interface MemberRecord {
  readonly hostname: string
  /** The name of its record: its name in Kubernetes. */
  readonly nodename: string
  readonly addresses: readonly string[]
  readonly controlPlane: boolean
}

/** What a request wants to be named. */
export interface WantedNames {
  readonly commonName?: string | undefined
  readonly dns: readonly string[]
  readonly ips: readonly string[]
}

/** Where the control planes are reached besides their own names and addresses. */
export interface SharedNames {
  readonly dns: readonly string[]
  readonly ips: readonly string[]
}

/** What of those wanted the caller cannot have, and whose it is. */
export type Taken = ReadonlyMap<string, 'member' | 'control planes'>

/** The names and addresses among those wanted that belong to others than the caller. */
export function namesOfOthers(wanted: WantedNames, caller: string, members: readonly MemberRecord[], shared: SharedNames): Taken {
  const from = canonicalIp(caller)
  const at = members.filter(({ addresses }) => addresses.some((address) => canonicalIp(address) === from))
  const self = at.length > 0 ? at : members.filter((member) => !member.controlPlane && hasName(member, wanted.commonName ?? ''))
  const foreign = (owners: readonly MemberRecord[]) => owners.length > 0 && !owners.some((owner) => self.includes(owner))
  const names = [...(wanted.commonName === undefined ? [] : [wanted.commonName]), ...wanted.dns]
  const ips = wanted.ips.filter((ip) => canonicalIp(ip) !== from)
  const isShared = (name: string) => shared.dns.some((one) => covers(name, one) || canonicalName(one) === canonicalName(name))
  const sharedIps = new Set(shared.ips.map(canonicalIp))
  // A name that a member has, the caller among them, is that member's, although the control planes may be reached by it too.
  const unowned = !self.some(({ controlPlane }) => controlPlane)
  const ofNobody = (owners: readonly MemberRecord[]) => unowned && owners.length === 0
  const taken = new Map<string, 'member' | 'control planes'>()
  for (const name of names) {
    const owners = members.filter((member) => hasName(member, name))
    if (foreign(owners)) taken.set(name, 'member')
    else if (ofNobody(owners) && isShared(name)) taken.set(name, 'control planes')
  }
  for (const ip of ips) {
    const address = canonicalIp(ip)
    const owners = members.filter(({ addresses }) => addresses.some((one) => canonicalIp(one) === address))
    if (foreign(owners)) taken.set(ip, 'member')
    else if (ofNobody(owners) && sharedIps.has(address)) taken.set(ip, 'control planes')
  }
  return taken
}

function hasName({ hostname, nodename }: MemberRecord, name: string): boolean {
  const wanted = canonicalName(name)
  const own = [hostname, nodename].map(canonicalName)
  // A name stands for its first label too, and a wildcard for all that it covers.
  return own.some((one) => one === wanted || one.split('.')[0] === wanted || covers(wanted, one))
}

/** Whether a name is a wildcard that stands for another, too. */
function covers(wildcard: string, name: string): boolean {
  const [pattern, one] = [canonicalName(wildcard), canonicalName(name)]
  const dot = one.indexOf('.')
  return pattern.startsWith('*.') && dot > 0 && one.slice(dot) === pattern.slice(1)
}

function canonicalName(name: string): string {
  return name.toLowerCase().replace(/\.$/, '')
}

function canonicalIp(text: string): string {
  const bytes = parseIp(text.replace(/%.*$/, ''))
  if (!bytes) return text
  const mapped = bytes.length === 16 && bytes.subarray(0, 10).every((byte) => byte === 0) && bytes[10] === 255 && bytes[11] === 255
  return formatIp(mapped ? bytes.subarray(12) : bytes)
}
