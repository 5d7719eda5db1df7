/**
 * Which of the names in a request are another machine's. All workers know the same token, so the token alone must not give
 * one of them another's name. Who asks is told by the address it asks from; only when that is no member's (a machine that
 * joins, or one behind a translation) by the name it gives itself, which never makes a control plane of it.
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

/** The names and addresses among those wanted that belong to other members than the caller. */
export function namesOfOthers(wanted: WantedNames, caller: string, members: readonly MemberRecord[]): Set<string> {
  const from = canonicalIp(caller)
  const at = members.filter(({ addresses }) => addresses.some((address) => canonicalIp(address) === from))
  const self = at.length > 0 ? at : members.filter((member) => !member.controlPlane && hasName(member, wanted.commonName ?? ''))
  const foreign = (owners: readonly MemberRecord[]) => owners.length > 0 && !owners.some((owner) => self.includes(owner))
  const names = [...(wanted.commonName === undefined ? [] : [wanted.commonName]), ...wanted.dns]
  return new Set([
    ...names.filter((name) => foreign(members.filter((member) => hasName(member, name)))),
    ...wanted.ips.filter((ip) => {
      const address = canonicalIp(ip)
      return address !== from && foreign(members.filter(({ addresses }) => addresses.some((one) => canonicalIp(one) === address)))
    }),
  ])
}

function hasName({ hostname, nodename }: MemberRecord, name: string): boolean {
  const wanted = canonicalName(name)
  const own = [hostname, nodename].map(canonicalName)
  // A name stands for its first label too, and a wildcard for all that it covers.
  return own.some((one) => one === wanted || one.split('.')[0] === wanted || (wanted.startsWith('*.') && covers(wanted, one)))
}

function covers(wildcard: string, name: string): boolean {
  const dot = name.indexOf('.')
  return dot > 0 && name.slice(dot) === wildcard.slice(1)
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
