import { ConfigError } from '../../../document/config-error.ts'
import { machine as enums } from '../../../rpc/enums.ts'
import { unary } from '../../../rpc/server/method.ts'
import { RpcError } from '../../../rpc/status.ts'
import type { Machine } from '../../area.ts'
import { reboot } from '../../lifecycle/stop.ts'
import { ApplyError, type ApplyMode, ConfigDesk } from '../desk.ts'

const numbers = enums.ApplyConfigurationRequest.Mode

const modes: Readonly<Record<number, ApplyMode>> = {
  [numbers.REBOOT]: 'reboot',
  [numbers.AUTO]: 'auto',
  [numbers.NO_REBOOT]: 'no-reboot',
  [numbers.STAGED]: 'staged',
  [numbers.TRY]: 'try',
}

/** Takes a configuration: from anyone while the machine has none, later from administrators only. */
export const applyConfiguration = (machine: Machine) => {
  const desk = new ConfigDesk(machine)
  return unary('machine.MachineService/ApplyConfiguration', ['os:admin', 'os:reader'], async (request, { roles }) => {
    if (!desk.inMaintenance && !roles.has('os:admin')) throw new RpcError('PermissionDenied', 'not authorized')
    const mode = modes[request.mode]
    if (!mode) throw new RpcError('InvalidArgument', `apply configuration: unknown mode ${request.mode}`)
    const { seconds = 60, nanos = 0 } = request.tryModeTimeout ?? {}
    try {
      const applied = await desk.apply(request.data, mode, { dryRun: request.dryRun, trialFor: seconds * 1000 + nanos / 1e6 })
      if (applied.mode === 'reboot' && !request.dryRun)
        void machine.sequencer.run('reboot', reboot(machine)).catch((error) => machine.log.error('reboot failed', { error }))
      const number = Number(Object.entries(modes).find(([, name]) => name === applied.mode)?.[0])
      return { messages: [{ warnings: [...applied.warnings], mode: number, modeDetails: applied.details }] }
    } catch (error) {
      if (error instanceof ConfigError) throw new RpcError('InvalidArgument', error.message)
      if (error instanceof ApplyError) throw new RpcError(error.reason === 'busy' ? 'FailedPrecondition' : 'InvalidArgument', error.message)
      throw error
    }
  })
}
