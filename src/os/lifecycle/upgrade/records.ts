/** What META remembers of upgrades: the trial that is under way, and releases that failed. */
import * as v from 'valibot'
import type { Machine } from '../../area.ts'
import { metaTags } from '../../block/meta/meta.ts'

const slot = v.picklist(['a', 'b'])

const trial = v.object({
  slot,
  version: v.string(),
  image: v.string(),
  /** Services that were up before, by id; they must be again. */
  services: v.array(v.string()),
  /** Kubernetes had this node for ready before. */
  nodeReady: v.boolean(),
  /** The machine had an address that others reach it at. */
  reachable: v.optional(v.boolean(), false),
  /** This control plane holds the cluster's claim to upgrade under this name. */
  claim: v.optional(v.string()),
})

/** A trial that was begun. */
export type Trial = v.InferOutput<typeof trial>

const failure = v.object({ version: v.string(), image: v.string(), why: v.string(), at: v.string() })

/** A release that did not come up on this machine. */
export type Failure = v.InferOutput<typeof failure>

/** So many are remembered. */
const most = 8

type Parts = Pick<Machine, 'meta'>

/** The trial under way; nothing when there is none, or what is written is not readable. */
export function trialOf({ meta }: Parts): Trial | undefined {
  return parsed(trial, meta.get(metaTags.upgradeFallback))
}

/** Remembers a trial before it begins, or that it has ended. */
export async function recordTrial({ meta }: Parts, value: Trial | undefined): Promise<void> {
  if (value) meta.set(metaTags.upgradeFallback, JSON.stringify(value))
  else if (!meta.delete(metaTags.upgradeFallback)) return
  await meta.flush()
}

/** Releases that failed, the last first. */
export function failuresOf({ meta }: Parts): readonly Failure[] {
  return parsed(v.array(failure), meta.get(metaTags.failedReleases)) ?? []
}

/** Remembers that a release failed. */
export async function recordFailure({ meta }: Parts, { version, image, why }: Omit<Failure, 'at'>): Promise<void> {
  const others = failuresOf({ meta }).filter((each) => each.image !== image)
  const failed = { version, image, why: why.slice(0, 500), at: new Date().toISOString() }
  meta.set(metaTags.failedReleases, JSON.stringify([failed, ...others].slice(0, most)))
  await meta.flush()
}

/** A release has proven itself: what it did before does not count. */
export async function forgetFailure({ meta }: Parts, image: string): Promise<void> {
  const known = failuresOf({ meta })
  const left = known.filter((each) => each.image !== image)
  if (left.length === known.length) return
  meta.set(metaTags.failedReleases, JSON.stringify(left))
  await meta.flush()
}

function parsed<T extends v.GenericSchema>(schema: T, text: string | undefined): v.InferOutput<T> | undefined {
  if (!text) return undefined
  try {
    return v.parse(schema, JSON.parse(text))
  } catch {
    return undefined
  }
}
