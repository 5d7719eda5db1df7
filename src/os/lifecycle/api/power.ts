import { machine as enums } from '../../../rpc/enums.ts'
import { type Method, unary } from '../../../rpc/server/method.ts'
import { RpcError } from '../../../rpc/status.ts'
import type { Machine } from '../../area.ts'
import { reset as resetPhases, wipeableLabels } from '../reset.ts'
import { reboot as rebootPhases, shutdown as shutdownPhases } from '../stop.ts'
import { hasEtcd, quorumWithoutSelf } from '../upgrade/quorum.ts'
import { beginSequence } from './begin.ts'

/** Reboot, shut down, reset: answered before they begin, told of in events under the actor id of the answer. */
export const powerMethods = (machine: Machine): Method[] => [
  unary('machine.MachineService/Reboot', ['os:admin', 'os:operator'], async ({ mode }) => {
    const force = mode === enums.RebootRequest.Mode.FORCE
    return { messages: [{ actorId: beginSequence(machine, 'reboot', rebootPhases(machine, { force })) }] }
  }),
  unary('machine.MachineService/Shutdown', ['os:admin', 'os:operator'], async ({ force }) => ({
    messages: [{ actorId: beginSequence(machine, 'shutdown', shutdownPhases(machine, { force })) }],
  })),
  unary('machine.MachineService/Reset', ['os:admin'], async ({ graceful, reboot, systemPartitionsToWipe, userDisksToWipe }) => {
    if (userDisksToWipe.length > 0)
      throw new RpcError('InvalidArgument', `reset: this node has no user disks to wipe (asked for ${userDisksToWipe.join(', ')})`)
    const labels = systemPartitionsToWipe.filter(({ wipe }) => wipe).map(({ label }) => label)
    const unknown = labels.filter((label) => !wipeableLabels.includes(label))
    if (unknown.length > 0)
      throw new RpcError('InvalidArgument', `reset: no partition "${unknown[0]}" to wipe, this node has ${wipeableLabels.join(' and ')}`)
    const quorum = graceful && hasEtcd(machine) ? await quorumWithoutSelf(machine) : undefined
    if (quorum && !quorum.holds) throw new RpcError('FailedPrecondition', `reset: ${quorum.text}: the cluster would lose its majority`)
    return { messages: [{ actorId: beginSequence(machine, 'reset', resetPhases(machine, { graceful, reboot, labels })) }] }
  }),
]
