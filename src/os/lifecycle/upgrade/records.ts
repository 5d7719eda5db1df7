/** Upgrade state in META: the trial in progress, and failed releases. */
import * as v from 'valibot'
import type { Machine } from '../../area.ts'
import { metaTags } from '../../block/public.ts'

const slot = v.picklist(['a', 'b'])

const trial = v.object({
  slot,
  version: v.string(),
  image: v.string(),
  /** Ids of services that were up before the upgrade and must be up again. */
  services: v.array(v.string()),
  /** The node was ready in Kubernetes before. */
  nodeReady: v.boolean(),
  /** The machine had a routable address before. */
  reachable: v.optional(v.boolean(), false),
  /** Name under which this control plane node holds the upgrade claim. */
  claim: v.optional(v.string()),
})

/** A trial in progress. */
export type Trial = v.InferOutput<typeof trial>

const failure = v.object({ version: v.string(), image: v.string(), why: v.string(), at: v.string() })

/** A release that failed on this machine. */
export type Failure = v.InferOutput<typeof failure>

/** Maximum number of records. */
const most = 8

type Dependencies = Pick<Machine, 'meta'>

/** The trial in progress; undefined if there is none or the record is unreadable. */
export function trialOf({ meta }: Dependencies): Trial | undefined {
  return parsed(trial, meta.get(metaTags.upgradeFallback))
}

/** Records a trial before it begins; undefined removes it. */
export async function recordTrial({ meta }: Dependencies, value: Trial | undefined): Promise<void> {
  if (value) meta.set(metaTags.upgradeFallback, JSON.stringify(value))
  else if (!meta.delete(metaTags.upgradeFallback)) return
  await meta.flush()
}

/** Failed releases, newest first. */
export function failuresOf({ meta }: Dependencies): readonly Failure[] {
  return parsed(v.array(failure), meta.get(metaTags.failedReleases)) ?? []
}

/** Records a failed release. */
export async function recordFailure({ meta }: Dependencies, { version, image, why }: Omit<Failure, 'at'>): Promise<void> {
  const others = failuresOf({ meta }).filter((each) => each.image !== image)
  const failed = { version, image, why: why.slice(0, 500), at: new Date().toISOString() }
  meta.set(metaTags.failedReleases, JSON.stringify([failed, ...others].slice(0, most)))
  await meta.flush()
}

/** Removes the failure records of a release that is now proven. */
export async function forgetFailure({ meta }: Dependencies, image: string): Promise<void> {
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
