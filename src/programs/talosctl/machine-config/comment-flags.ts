import { type Command, Option } from 'commander'
import { UsageError } from '../failure.ts'

/** Flags of the field about the comments of a configuration that a command changes. */
export interface CommentFlags {
  readonly withDocs: boolean
  readonly withExamples: boolean
}

/** Declares them. */
export function commentOptions(command: Command): Command {
  for (const flag of ['with-docs', 'with-examples'])
    command.addOption(new Option(`--${flag}`).default(true).hideHelp()).addOption(new Option(`--no-${flag}`).hideHelp())
  return command
}

/** Throws UsageError for a request to remove comments. */
export function checkCommentFlags({ withDocs, withExamples }: CommentFlags): void {
  if (!withDocs || !withExamples)
    throw new UsageError('comments of configurations stay as they are: leave --with-docs and --with-examples out')
}
