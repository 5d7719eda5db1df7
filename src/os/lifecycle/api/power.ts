import { machine as enums } from '../../../rpc/enums.ts'
import { type Method, operators, unary } from '../../../rpc/server/method.ts'
import { RpcError } from '../../../rpc/status.ts'
import type { Machine } from '../../area.ts'
import { reset as resetPhases } from '../reset.ts'
import { NothingSuch, type ResetRequest, resetTarget } from '../reset-target.ts'
import { reboot as rebootPhases, shutdown as shutdownPhases } from '../stop.ts'
import { hasEtcd, quorumWithoutSelf } from '../upgrade/quorum.ts'
import { beginSequence } from './begin.ts'

const { WipeMode: wipeModes } = enums.ResetRequest

/** Reboot, shutdown, reset: the reply comes first, then the sequence runs and reports events under the reply's actor id. */
export const powerMethods = (machine: Machine): Method[] => [
  unary('machine.MachineService/Reboot', operators, async ({ mode }) => {
    const { DEFAULT, FORCE } = enums.RebootRequest.Mode
    const how = { force: mode === FORCE, kexec: mode === DEFAULT }
    return { messages: [{ actorId: beginSequence(machine, 'reboot', rebootPhases(machine, how)) }] }
  }),
  unary('machine.MachineService/Shutdown', operators, async ({ force }) => ({
    messages: [{ actorId: beginSequence(machine, 'shutdown', shutdownPhases(machine, { force })) }],
  })),
  unary('machine.MachineService/Reset', ['os:admin'], async ({ graceful, reboot, mode, systemPartitionsToWipe, userDisksToWipe }) => {
    const target = targetOf(machine, {
      mode: mode === wipeModes.USER_DISKS ? 'user-disks' : mode === wipeModes.SYSTEM_DISK ? 'system-disk' : 'all',
      labels: systemPartitionsToWipe.filter(({ wipe }) => wipe).map(({ label }) => label),
      disks: userDisksToWipe,
    })
    const quorum = graceful && hasEtcd(machine) ? await quorumWithoutSelf(machine, 'leaving') : undefined
    if (quorum && !quorum.holds) throw new RpcError('FailedPrecondition', `reset: ${quorum.text}: the cluster would lose its majority`)
    return { messages: [{ actorId: beginSequence(machine, 'reset', resetPhases(machine, { graceful, reboot, ...target })) }] }
  }),
]

function targetOf({ store, kernel: { mode } }: Machine, request: ResetRequest): ReturnType<typeof resetTarget> {
  try {
    return resetTarget({ store, mode }, request)
  } catch (error) {
    if (error instanceof NothingSuch) throw new RpcError('InvalidArgument', `reset: ${error.message}`)
    throw error
  }
}
