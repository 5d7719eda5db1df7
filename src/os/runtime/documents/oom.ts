import { described, duration, expression, flag, section } from '../../../document/fields.ts'
import { defineDocument } from '../../../document/kind.ts'
import { milliseconds } from '../../../wire/duration.ts'
import { oomExpressionProblem, oomRanking, oomTrigger } from './oom-expression.ts'

/** What happens when memory runs short. */
export const OOMConfig = defineDocument({
  kind: 'OOMConfig',
  description: 'What happens when memory runs short. Without the document a machine acts by the defaults; a container node never acts.',
  schema: section({
    triggerExpression: described(
      expression,
      'When memory is short: an expression over figures of memory pressure. By default when the system or the pod runtime stalls, or everything does.',
    ),
    cgroupRankingExpression: described(
      expression,
      'Who goes first: an expression that gives each cgroup a number; one of 0 or less is never killed. By default the memory of best effort pods, and half the memory of burstable ones.',
    ),
    strictCgroupClassOrdering: described(flag, 'Whether less important classes always go first. Default: true.'),
    sampleInterval: described(duration, 'How often memory is sampled. Default: 500ms.'),
  }),
  rules({ triggerExpression, cgroupRankingExpression, sampleInterval }, report, mode) {
    const check = (key: string, compile: (text: string) => unknown, text: string | undefined) => {
      const problem = text === undefined ? undefined : oomExpressionProblem(compile, text)
      if (problem) report.error([key], problem)
    }
    check('triggerExpression', oomTrigger, triggerExpression)
    check('cgroupRankingExpression', oomRanking, cgroupRankingExpression)
    if (milliseconds(sampleInterval) < 0) report.error(['sampleInterval'], 'cannot be negative')
    if (mode === 'container') report.warning([], "has no effect in a container node: its memory is its host's to free")
  },
})
