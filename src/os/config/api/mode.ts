import { type ProtoTime, toMilliseconds } from '../../../rpc/proto-time.ts'
import { RpcError } from '../../../rpc/status.ts'
import { type ApplyMode, applyModeNames, applyModes } from '../apply/mode.ts'

/** The mode with this number. Throws RpcError. */
export function modeOf(number: number): ApplyMode {
  const mode = applyModeNames.find((name) => applyModes[name] === number)
  if (!mode) throw new RpcError('InvalidArgument', `apply configuration: unknown mode ${number}`)
  return mode
}

/** A duration on the wire in milliseconds; undefined when it was not given. */
export const milliseconds = (duration: ProtoTime | undefined): number | undefined => duration && toMilliseconds(duration)
