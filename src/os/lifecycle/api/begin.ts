import { background } from '../../../cosi/background.ts'
import { RpcError } from '../../../rpc/status.ts'
import type { Machine } from '../../area.ts'
import type { SequenceName } from '../../sequences.ts'
import { type Phase, SequenceLocked, TakenOver } from '../sequencer.ts'

/** Starts a sequence without waiting for it, since its last step ends this process. Returns the actor id of its events. */
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
      log.error('sequence failed, the machine keeps running', { sequence: name, error })
      await failed()
    })
  background(run, log, 'rollback of a failed sequence failed', { sequence: name })
  return actorId
}
