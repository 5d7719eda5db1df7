import { ConfigError } from '../../../document/config-error.ts'
import { machine as enums } from '../../../rpc/enums.ts'
import { type ProtoTime, toMilliseconds } from '../../../rpc/proto-time.ts'
import { RpcError, type StatusName } from '../../../rpc/status.ts'
import { ApplyError } from '../apply/config-apply.ts'
import type { ApplyMode } from '../apply/options.ts'

const numbers = enums.ApplyConfigurationRequest.Mode

const modes: Readonly<Record<number, ApplyMode>> = {
  [numbers.REBOOT]: 'reboot',
  [numbers.AUTO]: 'auto',
  [numbers.NO_REBOOT]: 'no-reboot',
  [numbers.STAGED]: 'staged',
  [numbers.TRY]: 'try',
}

/** The mode with this number. Throws RpcError. */
export function modeOf(number: number): ApplyMode {
  const mode = modes[number]
  if (!mode) throw new RpcError('InvalidArgument', `apply configuration: unknown mode ${number}`)
  return mode
}

/** The number of a mode. */
export const modeNumber = (mode: ApplyMode): number => Number(Object.entries(modes).find(([, name]) => name === mode)?.[0])

/** A duration on the wire in milliseconds; undefined when it was not given. */
export const milliseconds = (duration: ProtoTime | undefined): number | undefined => duration && toMilliseconds(duration)

const statuses: Readonly<Record<ApplyError['reason'], StatusName>> = {
  invalid: 'InvalidArgument',
  busy: 'FailedPrecondition',
  'not-found': 'NotFound',
}

/** Runs an operation of the apply service and turns its refusals into statuses. */
export async function answering<T>(act: () => Promise<T> | T): Promise<T> {
  try {
    return await act()
  } catch (error) {
    if (error instanceof ConfigError) throw new RpcError('InvalidArgument', error.message)
    if (error instanceof ApplyError) throw new RpcError(statuses[error.reason], error.message)
    throw error
  }
}
