/**
 * The oldest release a node accepts without force: the newest one proven on it, kept in META. A release stays signed forever,
 * so without a floor anyone allowed to upgrade could bring back every fixed flaw.
 */
import type { Machine } from '../../area.ts'
import { metaTags } from '../../block/public.ts'

/** The numbers of a version. A suffix, as in `v1.13.100-3-gabcdef`, is ignored. */
function numbersOf(version: string): readonly number[] | undefined {
  const [, ...numbers] = /^v?(\d{1,9})\.(\d{1,9})\.(\d{1,9})(?![\d.])/.exec(version) ?? []
  return numbers.length === 3 ? numbers.map(Number) : undefined
}

/** Whether a version precedes another. An unreadable version precedes all others. */
export function isOlder(version: string, than: string): boolean {
  const [one, other] = [numbersOf(version), numbersOf(than)]
  if (!other) return false
  if (!one) return true
  const [difference = 0] = one.map((number, index) => number - (other[index] ?? 0)).filter((each) => each !== 0)
  return difference < 0
}

/** The floor of this node; undefined before any release was proven. */
export const floorOf = ({ meta }: Pick<Machine, 'meta'>): string | undefined => meta.get(metaTags.minimumRelease)

/** Records a proven release. The floor never decreases. */
export async function raiseFloor({ meta }: Pick<Machine, 'meta'>, version: string): Promise<void> {
  const floor = floorOf({ meta })
  if (!numbersOf(version) || (floor !== undefined && !isOlder(floor, version))) return
  meta.set(metaTags.minimumRelease, version)
  await meta.flush()
}

/**
 * Why a release is too old for this node; undefined if it is not. A caller who is not an administrator (possible in maintenance
 * mode) cannot go below the running release either.
 */
export function tooOld(
  { meta, version: running }: Pick<Machine, 'meta' | 'version'>,
  version: string,
  { trusted }: { trusted: boolean },
): string | undefined {
  const floor = floorOf({ meta })
  if (floor !== undefined && isOlder(version, floor)) return `${version} is older than ${floor}, which was proven on this node`
  if (!trusted && isOlder(version, running.tag)) return `${version} is older than ${running.tag}, the running release`
  return undefined
}
