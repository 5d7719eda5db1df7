/** One control plane upgrades at a time: who does holds a name in etcd, over its restart, until it is well again. */
import type { Machine } from '../../area.ts'
import { localEtcd } from '../../etcd/endpoints.ts'
import { Nodename } from '../../k8s/resources/nodename.ts'

const name = 'ichor:v1:upgrade'
/** A node that never comes back holds the others up for so long, in seconds. */
const longest = 60 * 60

type Parts = Pick<Machine, 'store'>

/** The name under which this node claims. */
export function claimant({ store }: Parts): string {
  return store.get(Nodename, 'nodename')?.spec.nodename ?? 'a node without a name'
}

/** Takes the claim; the name of the node that has it, when it is another. */
export async function takeClaim(parts: Parts): Promise<string | undefined> {
  const client = localEtcd(parts.store)
  try {
    const own = claimant(parts)
    const holder = await client.claim(name, own, longest)
    return holder === own ? undefined : holder
  } finally {
    client.close()
  }
}

/** Gives the claim back. */
export async function dropClaim({ store }: Parts, holder: string): Promise<void> {
  const client = localEtcd(store)
  try {
    await client.release(name, holder)
  } finally {
    client.close()
  }
}
