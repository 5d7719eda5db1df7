import { type Command, Option } from 'commander'
import { duration } from '../flags.ts'

/** Adds the flags that commands taking nodes down have in common. */
export function actionOptions(command: Command): Command {
  return command
    .addOption(new Option('--wait').default(true).hideHelp())
    .option('--no-wait', 'only start it')
    .option('--timeout <duration>', 'how long to wait', duration, 30 * 60_000)
    .option('--debug', 'show the kernel log while waiting')
    .addOption(new Option('--progress <mode>', 'how to show what happens').choices(['auto', 'plain', 'none']).default('auto'))
}
