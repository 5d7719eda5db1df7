/** What a disk may hold after the power was cut at any moment while these writes were under way. */
import type { DiskCall } from '../../support/memory-disk.ts'
import { sample } from '../../support/runs.ts'

type Write = Exclude<DiskCall, 'flush'>

/** A moment: what is on the disk then, and whether it stopped between two sectors. */
export interface Cut {
  image: Uint8Array
  /** Every sector holds the old or the new: none was torn. */
  wholeSectors: boolean
}

const sector = 512
/** Writes of one step are tried in every combination up to so many. */
const mostTogether = 5

/**
 * Every prefix of the writes; of those that were not flushed yet every combination, since a disk writes in its own order;
 * and the last of them torn: at sectors, which a disk may do, and within one, which it should not. The image is the same
 * piece of memory each time.
 */
export function* powerCuts(before: Uint8Array, calls: readonly DiskCall[]): Generator<Cut> {
  const image = before.slice()
  yield { image, wholeSectors: true }
  for (const step of steps(calls)) {
    const undo = step.map(({ offset, bytes }) => ({ offset, bytes: image.slice(offset, offset + bytes.length) }))
    const put = (writes: readonly Write[]) => {
      for (const { offset, bytes } of writes) image.set(bytes, offset)
    }
    const back = () => put(undo.toReversed())
    for (const some of combinations(step)) {
      put(some)
      yield { image, wholeSectors: true }
      back()
    }
    for (const [index, last] of step.entries())
      for (const at of tears(last.bytes.length)) {
        put(step.slice(0, index))
        put([{ offset: last.offset, bytes: last.bytes.subarray(0, at) }])
        yield { image, wholeSectors: (last.offset + at) % sector === 0 }
        back()
      }
    put(step)
  }
  yield { image, wholeSectors: true }
}

/** The same at every `nth` moment, and at fewer of them where FUZZ_RUNS wants fewer. */
export function* someCuts(before: Uint8Array, calls: readonly DiskCall[], nth: number): Generator<Cut> {
  const all = powerCuts(before, calls).reduce((count) => count + 1, 0)
  const chosen = new Set(sample(Array.from({ length: Math.ceil(all / nth) }, (_, index) => index * nth)))
  let at = 0
  for (const cut of powerCuts(before, calls)) if (chosen.has(at++)) yield cut
}

/** The writes between one flush and the next. */
function steps(calls: readonly DiskCall[]): Write[][] {
  const found: Write[][] = [[]]
  for (const call of calls)
    if (call === 'flush') found.push([])
    else found.at(-1)!.push(call)
  return found.filter((step) => step.length > 0)
}

function combinations(step: readonly Write[]): Write[][] {
  if (step.length > mostTogether) return step.map((_, index) => step.slice(0, index + 1))
  const found: Write[][] = []
  for (let mask = 1; mask < 1 << step.length; mask++) found.push(step.filter((_, index) => mask & (1 << index)))
  return found
}

/** Places at which a write of that length is cut off. */
function tears(length: number): number[] {
  const places = [1, 100, sector - 1, sector, sector + 1, length - sector, length - 1]
  for (let at = 0; at < length; at += Math.max(sector, Math.floor(length / 16 / sector) * sector)) places.push(at)
  return [...new Set(places)].filter((at) => at > 0 && at < length).sort((a, b) => a - b)
}
