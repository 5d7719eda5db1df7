import { background } from '../../../cosi/background.ts'
import { RpcError } from '../../../rpc/status.ts'
import type { Machine } from '../../area.ts'
import { type Phase, SequenceLocked, type SequenceName, TakenOver } from '../sequencer.ts'

/** Starts a sequence and does not wait for it, since its last step ends this process; gives the actor id of its events. */
export function beginSequence(
  { sequencer, log }: Pick<Machine, 'sequencer' | 'log'>,
  name: SequenceName,
  phases: readonly Phase[],
  failed: () => void | Promise<void> = () => {},
): string {
  if (!sequencer.mayStart(name))
    throw new RpcError('FailedPrecondition', `${name}: sequence "${sequencer.running}" is running, try again when it is done`)
  const actorId = crypto.randomUUID()
  const run = () =>
    sequencer.run(name, phases, actorId).catch(async (error) => {
      if (error instanceof SequenceLocked || error instanceof TakenOver) return
      log.error(`${name} failed, the machine goes on as it is`, { error })
      await failed()
    })
  background(run, log, 'undo of a failed sequence failed', { sequence: name })
  return actorId
}
