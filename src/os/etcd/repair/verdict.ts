/** Decides whether an etcd that exited by itself can use its data, from the data and from what the other members report. */
import * as v from 'valibot'
import { type EtcdClient, hexId, type Member } from '../client.ts'

/** What `etcd-verify` prints. */
const verification = v.object({
  /** The member that wrote the data, and its cluster. */
  owner: v.optional(v.object({ member: v.string(), cluster: v.string() })),
  /** The hash of all keys up to the last revision, and the revision up to which history was discarded. */
  keys: v.optional(v.object({ hash: v.number(), revision: v.number(), compacted: v.number() })),
  damage: v.array(v.object({ file: v.string(), problem: v.string() })),
})

/** What is wrong with the files themselves. */
export type Verification = v.InferOutput<typeof verification>

/** Parses the output of `etcd-verify`. */
export const verificationOf = (output: string): Verification => v.parse(verification, JSON.parse(output))

/** The files cannot be used as they are; undefined when nothing is wrong with them. */
export function damageOf({ damage }: Verification): string | undefined {
  const [first] = damage
  if (!first) return undefined
  const more = damage.length > 1 ? ` (and ${damage.length - 1} more)` : ''
  return `${first.file} is damaged: ${first.problem}${more}`
}

/** Why the cluster has no use for data of this owner; undefined when it has. */
export function membershipOf(owner: Verification['owner'], cluster: string, members: readonly Member[]): string | undefined {
  if (!owner || owner.cluster !== cluster || members.some(({ ID }) => ID === owner.member)) return undefined
  return `the cluster has no member ${hexId(owner.member)} any more, whose data this is`
}

/** Whether the keys differ from those of all the others that have the same history; one other is not enough to decide. */
export async function differenceOf({ keys }: Verification, others: readonly EtcdClient[]): Promise<string | undefined> {
  if (!keys) return undefined
  const hashes = await Promise.all(others.map((client) => client.hashKv(keys.revision).catch(() => undefined)))
  // It is -1 where no history was discarded yet.
  const comparable = hashes.flatMap((other) => (other && Math.max(0, other.compactRevision) === keys.compacted ? [other.hash] : []))
  if (comparable.length < 2 || new Set(comparable).size > 1 || comparable[0] === keys.hash) return undefined
  return `its keys at revision ${keys.revision} differ from those of the ${comparable.length} other members`
}
