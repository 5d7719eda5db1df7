import type { Clock } from '../../../cosi/clock.ts'
import type { EtcdClient } from '../client.ts'

/** Under this key a control plane claims the backup, so that one at a time takes one. */
const claimName = 'ichor:etcd:backup'
/** How long a silent holder keeps it, in seconds, and after how many milliseconds it is renewed. */
const claimSeconds = 60
const renewal = 15_000

/** Another control plane takes a backup at the moment. */
export class BackupClaimed extends Error {
  override name = 'BackupClaimed'
}

/** Runs `act` while this node holds the claim; aborts its signal before another node can hold it. Throws BackupClaimed. */
export async function withClaim<T>(
  { client, node, clock }: { client: EtcdClient; node: string; clock: Clock },
  act: (signal: AbortSignal) => Promise<T>,
  outer: AbortSignal,
): Promise<T> {
  const claim = async () => {
    const holder = await client.claim(claimName, node, claimSeconds)
    if (holder !== node) throw new BackupClaimed(`${holder} takes a backup of etcd at the moment`)
  }
  const over = new AbortController()
  const lost = new AbortController()
  const trust = () => clock.deadline((claimSeconds * 1000) / 2)
  let trusted = trust()
  await claim()
  const renewing = (async () => {
    for (;;) {
      await clock.sleep(renewal, over.signal)
      if (over.signal.aborted) return
      const next = trust()
      try {
        await claim()
        trusted = next
      } catch (error) {
        if (error instanceof BackupClaimed || trusted.over) return lost.abort(error)
      }
    }
  })()
  try {
    return await act(AbortSignal.any([outer, lost.signal]))
  } finally {
    over.abort()
    await renewing
    // Should this fail, the claim expires.
    await client.release(claimName, node).catch(() => undefined)
  }
}
