import { duration, expression, flag, section } from '../../../document/fields.ts'
import { defineDocument } from '../../../document/kind.ts'
import { milliseconds } from '../../../wire/duration.ts'

/** What happens when memory runs out. */
export const OOMConfig = defineDocument({
  kind: 'OOMConfig',
  description: 'What happens when memory runs out.',
  notYet: 'the kernel decides by oom_score_adj, leave the document out',
  schema: section({
    triggerExpression: expression,
    cgroupRankingExpression: expression,
    strictCgroupClassOrdering: flag,
    sampleInterval: duration,
  }),
  rules({ sampleInterval }, report) {
    if (milliseconds(sampleInterval) < 0) report.error(['sampleInterval'], 'cannot be negative')
  },
})
