import { machine as enums } from '../../../rpc/enums.ts'
import { type ProtoTime, toMilliseconds } from '../../../rpc/proto-time.ts'
import { RpcError } from '../../../rpc/status.ts'
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
