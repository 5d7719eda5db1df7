import { described, duration, expression, flag, section } from '../../../document/fields.ts'
import { defineDocument } from '../../../document/kind.ts'
import { milliseconds } from '../../../wire/duration.ts'

/** What happens when memory runs out. */
export const OOMConfig = defineDocument({
  kind: 'OOMConfig',
  description: 'What happens when memory runs out.',
  notYet: 'the kernel decides by oom_score_adj, leave the document out',
  schema: section({
    triggerExpression: described(expression, 'When memory is short: an expression over figures of memory pressure.'),
    cgroupRankingExpression: described(expression, 'Who goes first: an expression that gives each cgroup a number.'),
    strictCgroupClassOrdering: described(flag, 'Whether less important classes always go first.'),
    sampleInterval: described(duration, 'How often memory is looked at.'),
  }),
  rules({ sampleInterval }, report) {
    if (milliseconds(sampleInterval) < 0) report.error(['sampleInterval'], 'cannot be negative')
  },
})
