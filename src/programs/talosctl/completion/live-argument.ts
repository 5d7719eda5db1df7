import { Argument } from 'commander'
import type { Cluster } from '../cluster.ts'

/** Finds the values an argument may have; `before` are the arguments in front of it, `flags` those given. */
export type Suggest = (
  cluster: Cluster,
  before: readonly string[],
  flags: Readonly<Record<string, unknown>>,
  word: string,
) => Promise<string[]>

/** An argument with values from the cluster, which completion queries. */
export class LiveArgument extends Argument {
  constructor(
    argument: string,
    description: string,
    readonly suggest: Suggest,
  ) {
    super(argument, description)
  }
}
