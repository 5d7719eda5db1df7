import { machine as enums } from '../../../rpc/enums.ts'
import { type Method, unary } from '../../../rpc/server/method.ts'
import { RpcError } from '../../../rpc/status.ts'
import type { Machine } from '../../area.ts'
import { reset as resetPhases, wipeableLabels } from '../reset.ts'
import { type Phase, SequenceLocked, type SequenceName, TakenOver } from '../sequencer.ts'
import { reboot as rebootPhases, shutdown as shutdownPhases } from '../stop.ts'

/** Reboot, shut down, reset: answered before they begin, told of in events under the actor id of the answer. */
export const powerMethods = (machine: Machine): Method[] => [
  unary('machine.MachineService/Reboot', ['os:admin', 'os:operator'], async ({ mode }) => {
    const force = mode === enums.RebootRequest.Mode.FORCE
    return { messages: [{ actorId: begin(machine, 'reboot', rebootPhases(machine, { force })) }] }
  }),
  unary('machine.MachineService/Shutdown', ['os:admin', 'os:operator'], async ({ force }) => ({
    messages: [{ actorId: begin(machine, 'shutdown', shutdownPhases(machine, { force })) }],
  })),
  unary('machine.MachineService/Reset', ['os:admin'], async ({ graceful, reboot, systemPartitionsToWipe, userDisksToWipe }) => {
    if (userDisksToWipe.length > 0)
      throw new RpcError('InvalidArgument', `reset: this node has no user disks to wipe (asked for ${userDisksToWipe.join(', ')})`)
    const labels = systemPartitionsToWipe.filter(({ wipe }) => wipe).map(({ label }) => label)
    const unknown = labels.filter((label) => !wipeableLabels.includes(label))
    if (unknown.length > 0)
      throw new RpcError('InvalidArgument', `reset: no partition "${unknown[0]}" to wipe, this node has ${wipeableLabels.join(' and ')}`)
    return { messages: [{ actorId: begin(machine, 'reset', resetPhases(machine, { graceful, reboot, labels })) }] }
  }),
]

/** Starts a sequence and does not wait for it: its last step ends this process. */
function begin({ sequencer, log }: Machine, name: SequenceName, phases: readonly Phase[]): string {
  if (!sequencer.mayStart(name))
    throw new RpcError('FailedPrecondition', `${name}: sequence "${sequencer.running}" is running, try again when it is done`)
  const actorId = crypto.randomUUID()
  void sequencer.run(name, phases, actorId).catch((error) => {
    if (!(error instanceof SequenceLocked || error instanceof TakenOver))
      log.error(`${name} failed, the machine goes on as it is`, { error })
  })
  return actorId
}
