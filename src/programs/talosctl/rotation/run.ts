/** Carries out the rounds of a rotation: each node in turn, and a proof on all of them before the next round. */
import type { ConfigContainer } from '../../../os/config/container.ts'
import { describe } from '../failure.ts'
import type { Round } from './rounds.ts'

/** What the rounds are carried out with. */
export interface RotationSteps<R extends Round> {
  /** How messages call what is replaced, like "the authority of Kubernetes". */
  readonly subject: string
  /** In the order in which they are changed. */
  readonly nodes: readonly string[]
  read(node: string): Promise<ConfigContainer>
  /** How far a node is. Throws when its configuration belongs to another rotation. */
  stageOf(config: ConfigContainer): number
  advance(config: ConfigContainer, stage: R['stage']): ConfigContainer
  apply(node: string, config: ConfigContainer, round: R): Promise<void>
  /** Waits until one changed node works again, before the next one is changed. */
  settle?(node: string, round: R): Promise<void>
  /** Resolves when the result of a round was seen on every node; throws the reason when its deadline has passed. */
  prove(round: R): Promise<void>
  report(line: string): void
}

/** A round that could not be completed. Nothing is lost: the same command continues. */
export class RotationStopped extends Error {
  override name = 'RotationStopped'
}

/**
 * Carries out the rounds. A node that is at the stage of a round already is left alone. A round that all nodes have reached is
 * proven again, unless a node is beyond it: then it was proven before, and what the later round changed no longer fits its proof.
 */
export async function runRounds<R extends Round>(rounds: readonly R[], steps: RotationSteps<R>): Promise<void> {
  for (const [index, round] of rounds.entries()) {
    const title = `${steps.subject}: ${round.name}`
    try {
      await runRound(round, `${title} (${index + 1}/${rounds.length})`, steps)
    } catch (error) {
      throw new RotationStopped(`${title}: ${describe(error).replace(/\n*$/, '')}\nrun the same command again: it continues from here`, {
        cause: error,
      })
    }
  }
}

async function runRound<R extends Round>(round: R, title: string, steps: RotationSteps<R>): Promise<void> {
  let beyond = false
  for (const node of steps.nodes) {
    const config = await steps.read(node)
    const stage = steps.stageOf(config)
    beyond ||= stage > round.stage
    if (stage >= round.stage) {
      steps.report(`${title}: ${node} has it already`)
      continue
    }
    await steps.apply(node, steps.advance(config, round.stage), round)
    await steps.settle?.(node, round)
    steps.report(`${title}: ${node} changed`)
  }
  if (beyond) return
  await steps.prove(round)
  steps.report(`${title}: proven on every node`)
}

/** What the rounds would do, one line each; nothing is changed. */
export async function planRounds<R extends Round>(
  rounds: readonly R[],
  steps: Omit<RotationSteps<R>, 'apply' | 'prove'>,
): Promise<string[]> {
  const stages = await Promise.all(steps.nodes.map(async (node) => ({ node, stage: steps.stageOf(await steps.read(node)) })))
  return rounds.map(({ name, stage }, index) => {
    const left = stages.filter((one) => one.stage < stage).map(({ node }) => node)
    return `${index + 1}. ${name}: ${left.length > 0 ? left.join(', ') : 'done on every node'}`
  })
}
