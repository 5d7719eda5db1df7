import { Option } from 'commander'
import { machine as wire } from '../../../rpc/enums.ts'
import { duration } from '../flags.ts'

const numbers = {
  auto: wire.ApplyConfigurationRequest.Mode.AUTO,
  'no-reboot': wire.ApplyConfigurationRequest.Mode.NO_REBOOT,
  reboot: wire.ApplyConfigurationRequest.Mode.REBOOT,
  staged: wire.ApplyConfigurationRequest.Mode.STAGED,
  try: wire.ApplyConfigurationRequest.Mode.TRY,
} as const

/** How a configuration is to take effect. */
export type ApplyMode = keyof typeof numbers

/** The flags of commands that apply a configuration. */
export interface ApplyFlags {
  mode: ApplyMode
  dryRun?: boolean
  timeout: number
  confirmWithin?: number
  force?: boolean
  /** `false` with --no-confirm. */
  confirm?: boolean
}

/** Declares those flags. */
export function applyOptions(): Option[] {
  return [
    new Option('-m, --mode <mode>', 'how it takes effect').choices(Object.keys(numbers)).default('auto'),
    new Option('--dry-run', 'only show what would change'),
    new Option('--timeout <duration>', 'with --mode=try, when to go back').argParser(duration).default(60_000, '1m'),
    new Option('--confirm-within <duration>', 'go back after so long, over restarts too, unless confirmed').argParser(duration),
    new Option('--no-confirm', 'keep a change of network, authorities or firewall although the node may not be reached any more'),
    new Option('--force', 'apply it although it makes the node another machine or one of another cluster'),
  ]
}

/** The number of a mode on the wire. */
export function modeNumber(mode: ApplyMode): number {
  return numbers[mode]
}
