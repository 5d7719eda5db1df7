import { type Method, unary } from '../../../rpc/server/method.ts'
import { RpcError } from '../../../rpc/status.ts'
import type { ConfigDesk } from '../desk.ts'
import { callerOf } from './caller.ts'
import { atDesk, milliseconds, modeNumber, modeOf } from './mode.ts'

/** Takes a configuration: from anyone while the machine has none, later from administrators only. */
export const applyConfiguration = (desk: ConfigDesk): Method =>
  unary('machine.MachineService/ApplyConfiguration', ['os:admin', 'os:reader'], (request, context) => {
    if (!desk.inMaintenance && !context.roles.has('os:admin')) throw new RpcError('PermissionDenied', 'not authorized')
    const mode = modeOf(request.mode)
    const options = { dryRun: request.dryRun, trialFor: milliseconds(request.tryModeTimeout), by: callerOf(context) }
    return atDesk(async () => {
      const applied = await desk.apply(request.data, mode, options)
      if (applied.mode === 'reboot' && !request.dryRun) desk.reboot()
      return { messages: [{ warnings: [...applied.warnings], mode: modeNumber(applied.mode), modeDetails: applied.details }] }
    })
  })
