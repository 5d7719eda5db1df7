import { inMaintenanceOr, type Method, unary } from '../../../rpc/server/method.ts'
import type { ConfigApply } from '../apply/config-apply.ts'
import { applyModes } from '../apply/mode.ts'
import { addressOf, callerOf, connectionAge } from './caller.ts'
import { milliseconds, modeOf } from './mode.ts'

/** Applies a configuration: for any caller while the machine has none, later for administrators only. */
export const applyConfiguration = (service: ConfigApply): Method =>
  unary('machine.MachineService/ApplyConfiguration', inMaintenanceOr(['os:admin']), async (request, context) => {
    const mode = modeOf(request.mode)
    const options = {
      dryRun: request.dryRun,
      trialFor: milliseconds(request.tryModeTimeout),
      by: callerOf(context),
      from: addressOf(context),
      age: connectionAge(context),
    }
    const applied = await service.apply(request.data, mode, options)
    return { messages: [{ warnings: [...applied.warnings], mode: applyModes[applied.mode], modeDetails: applied.details }] }
  })
