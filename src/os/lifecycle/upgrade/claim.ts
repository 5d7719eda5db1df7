/** Serializes upgrades of control plane nodes: the upgrading node holds a claim in etcd, over its reboot, until it is healthy. */
import type { Machine } from '../../area.ts'
import { localEtcd } from '../../etcd/public.ts'
import { Nodename } from '../../k8s/resources/nodename.ts'

const name = 'ichor:v1:upgrade'
/** TTL of the claim in seconds: how long a node that never returns blocks the others. */
const longest = 60 * 60

type Dependencies = Pick<Machine, 'store'>

/** The name under which this node claims. */
export function claimant({ store }: Dependencies): string {
  return store.get(Nodename, 'nodename')?.spec.nodename ?? 'a node without a name'
}

/** Takes the claim. Returns the name of the node that holds it, if it is another. */
export async function takeClaim(deps: Dependencies): Promise<string | undefined> {
  const client = localEtcd(deps.store)
  try {
    const own = claimant(deps)
    const holder = await client.claim(name, own, longest)
    return holder === own ? undefined : holder
  } finally {
    client.close()
  }
}

/** Releases the claim. */
export async function dropClaim({ store }: Dependencies, holder: string): Promise<void> {
  const client = localEtcd(store)
  try {
    await client.release(name, holder)
  } finally {
    client.close()
  }
}
