/** Where apid runs: in its container, or before there is a containerd as a plain process. */
import type { Machine } from '../area.ts'

type Dependencies = Pick<Machine, 'supervisor' | 'log'>

const bare = new WeakSet<Dependencies['supervisor']>()

/** Whether apid can run in its container by now; records the consequences of the answer. */
export function isContainable({ supervisor }: Pick<Dependencies, 'supervisor'>): boolean {
  const containerd = supervisor.get('containerd')
  const can = containerd?.state === 'Running' && containerd.health.healthy === true
  if (can) bare.delete(supervisor)
  else bare.add(supervisor)
  return can
}

/** Moves apid into its container as soon as possible. */
export async function containApid({ supervisor, log }: Dependencies, signal: AbortSignal): Promise<void> {
  await supervisor.until('containerd', 'up', signal)
  if (!bare.has(supervisor)) return
  log.info('moving apid into its container')
  await supervisor.restart('apid')
}
