/**
 * The oldest release that a node takes without being forced: the newest that proved itself on it, kept in META. Every release
 * ever signed stays signed, so without a floor whoever may order an upgrade could bring back any flaw that was mended since.
 */
import type { Machine } from '../../area.ts'
import { metaTags } from '../../block/meta/meta.ts'

/** Numbers of a version; what follows them, as in `v1.13.100-3-gabcdef`, does not count. */
function numbersOf(version: string): readonly number[] | undefined {
  const [, ...numbers] = /^v?(\d{1,9})\.(\d{1,9})\.(\d{1,9})(?![\d.])/.exec(version) ?? []
  return numbers.length === 3 ? numbers.map(Number) : undefined
}

/** Whether a version comes before another; one that cannot be read comes before all that can. */
export function isOlder(version: string, than: string): boolean {
  const [one, other] = [numbersOf(version), numbersOf(than)]
  if (!other) return false
  if (!one) return true
  const differing = one.findIndex((number, index) => number !== other[index])
  return differing >= 0 && one[differing]! < other[differing]!
}

/** The floor of this node; undefined before any release proved itself. */
export const floorOf = ({ meta }: Pick<Machine, 'meta'>): string | undefined => meta.get(metaTags.minimumRelease)

/** Remembers that a release proved itself; the floor never sinks. */
export async function raiseFloor({ meta }: Pick<Machine, 'meta'>, version: string): Promise<void> {
  const floor = floorOf({ meta })
  if (!numbersOf(version) || (floor !== undefined && !isOlder(floor, version))) return
  meta.set(metaTags.minimumRelease, version)
  await meta.flush()
}

/**
 * Why a release is too old for this node; undefined when it is not. A caller who is no administrator (anybody, while the
 * machine waits for its configuration) cannot go below the release that runs either.
 */
export function tooOld(
  { meta, version: running }: Pick<Machine, 'meta' | 'version'>,
  version: string,
  { trusted }: { trusted: boolean },
): string | undefined {
  const floor = floorOf({ meta })
  if (floor !== undefined && isOlder(version, floor)) return `${version} is older than ${floor}, which proved itself on this node`
  if (!trusted && isOlder(version, running.tag)) return `${version} is older than ${running.tag}, which runs`
  return undefined
}
