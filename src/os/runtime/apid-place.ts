/** Where the door of the node runs: in its container, or before there is a containerd as a plain process. */
import type { Machine } from '../area.ts'

type Parts = Pick<Machine, 'supervisor' | 'log'>

const bare = new WeakSet<Parts['supervisor']>()

/** Whether it can be put into its container by now; notes what follows from the answer. */
export function isContainable({ supervisor }: Pick<Parts, 'supervisor'>): boolean {
  const containerd = supervisor.get('containerd')
  const can = containerd?.state === 'Running' && containerd.health.healthy === true
  if (can) bare.delete(supervisor)
  else bare.add(supervisor)
  return can
}

/** Puts it into its container as soon as that can be. */
export async function containApid({ supervisor, log }: Parts, signal: AbortSignal): Promise<void> {
  await supervisor.until('containerd', 'up', signal)
  if (!bare.has(supervisor)) return
  log.info('the API goes into its container')
  await supervisor.restart('apid')
}
