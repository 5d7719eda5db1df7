/** The steps of an upgrade or a rollback: one component of one node each, healthy before the next one begins. */
import type { ConfigContainer } from '../../../os/config/container.ts'
import { describe } from '../failure.ts'
import { type ComponentName, componentNames, imageIn, runs, withImage } from './components.ts'
import type { UpgradedNode } from './nodes.ts'
import { withoutDigest } from './versions.ts'

/** One component of one node. */
export interface Step {
  readonly component: ComponentName
  readonly node: UpgradedNode
  /** The image that the configuration names afterwards; none where the default is used again. */
  readonly configured: string | undefined
  /** The image that the component runs with afterwards. */
  readonly running: string
}

/** The image of a component of a node afterwards; undefined for one that is not changed. */
export type Target = (node: UpgradedNode, component: ComponentName) => Pick<Step, 'configured' | 'running'> | undefined

/** The steps in their order: the API servers first and the kubelets last, each node by node. */
export function stepsOf(nodes: readonly UpgradedNode[], target: Target): Step[] {
  return componentNames.flatMap((component) =>
    nodes.flatMap((node) => {
      const images = node.controlPlane || component === 'kubelet' ? target(node, component) : undefined
      return images ? [{ component, node, ...images }] : []
    }),
  )
}

/** The steps of the way back: a kubelet is never newer than an API server. */
export const backwards = (steps: readonly Step[]): Step[] => steps.toReversed()

/** What steps are carried out with. */
export interface StepOperations {
  /** The configuration of a node, and the image in effect where it names none. */
  read(step: Step): Promise<{ readonly config: ConfigContainer; readonly running: string | undefined }>
  /** Changes the configuration of a node. */
  apply(step: Step, config: ConfigContainer): Promise<void>
  /** Resolves when the component runs with the image and is healthy; throws the reason when its time is over. */
  prove(step: Step): Promise<void>
  report(line: string): void
}

/** A step that did not come to its end. */
export class StepFailed extends Error {
  override name = 'StepFailed'
}

/**
 * Carries out the steps. One whose image is in place is left alone, and proven too if requested: while the API server is being
 * brought back, nothing that runs in the cluster can be.
 */
export async function runSteps(steps: readonly Step[], operations: StepOperations, proveUnchanged: boolean): Promise<void> {
  for (const [index, step] of steps.entries()) {
    const title = `${step.component} of ${step.node.name} (${index + 1}/${steps.length})`
    try {
      const { config, running } = await operations.read(step)
      if (!runs(step.node, step.component, config)) {
        operations.report(`${title}: not used`)
        continue
      }
      const next = changed(step, config, running)
      if (next) {
        operations.report(`${title}: changing it to ${step.running}`)
        await operations.apply(step, next)
      }
      if (next || proveUnchanged) await operations.prove(step)
      operations.report(`${title}: ${next ? 'healthy' : proveUnchanged ? 'has it already, and is healthy' : 'has it already'}`)
    } catch (error) {
      throw new StepFailed(`${title}: ${describe(error).replace(/\n*$/, '')}`, { cause: error })
    }
  }
}

/** The configuration of a node after a step; undefined if it needs no change. */
export function changed(step: Step, config: ConfigContainer, running: string | undefined): ConfigContainer | undefined {
  const present = imageIn(config, step.component)
  const same = (image: string | undefined) => image !== undefined && withoutDigest(image) === withoutDigest(step.running)
  if (step.configured === undefined) return present === undefined ? undefined : withImage(config, step.component, undefined)
  if (present === step.configured || same(present ?? running)) return undefined
  return withImage(config, step.component, step.configured)
}
