import { Option } from 'commander'
import { type ApplyMode, applyModeNames } from '../../../os/config/apply/mode.ts'
import { duration } from '../flags.ts'

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
    new Option('-m, --mode <mode>', 'how it takes effect').choices(applyModeNames).default('auto'),
    new Option('--dry-run', 'only show what would change'),
    new Option('--timeout <duration>', 'with --mode=try, when to go back').argParser(duration).default(60_000, '1m'),
    new Option('--confirm-within <duration>', 'go back after so long, over restarts too, unless confirmed').argParser(duration),
    new Option('--no-confirm', 'keep a change of network, authorities or firewall although the node may not be reached any more'),
    new Option('--force', 'apply it although it makes the node another machine or one of another cluster'),
  ]
}
