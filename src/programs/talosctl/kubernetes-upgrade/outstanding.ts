/** The steps that are not done yet, and what they would change. */
import type { ConfigContainer } from '../../../os/config/container.ts'
import type { Io } from '../io.ts'
import { differenceOf } from '../machine-config/difference.ts'
import { paintDiff } from '../output/diff-paint.ts'
import { nodeOperations, type StepContext } from './operations.ts'
import { changed, type Step } from './steps.ts'

/** A step that is not done yet. */
export interface Outstanding {
  readonly step: Step
  readonly before: ConfigContainer
  readonly after: ConfigContainer
}

/** The steps whose image the configuration of their node does not have. */
export async function outstanding(context: StepContext, steps: readonly Step[]): Promise<Outstanding[]> {
  const operations = nodeOperations(context)
  const left: Outstanding[] = []
  for (const step of steps) {
    const { config, running } = await operations.read(step)
    const after = changed(step, config, running)
    if (after) left.push({ step, before: config, after })
  }
  return left
}

/** Prints what steps would change in the configuration of their nodes. */
export async function showSteps(io: Io, left: readonly Outstanding[]): Promise<void> {
  for (const { step, before, after } of left)
    io.stdout.write(`${step.component} of ${step.node.name}:\n${paintDiff(io.stdout, await differenceOf(before.text, after.text))}`)
}
