import { isCidr, isIp } from '../../../document/fields.ts'

/** True for a subnet or an address, with an optional "!" that excludes it. */
export function isSubnet(written: string): boolean {
  const bare = written.replace(/^!/, '')
  return isCidr(bare) || isIp(bare)
}
