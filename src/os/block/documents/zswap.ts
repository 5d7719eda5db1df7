import { flag, integer, section } from '../../../document/fields.ts'
import { defineDocument } from '../../../document/kind.ts'

/** Compressed swap in memory. */
export const ZswapConfig = defineDocument({
  kind: 'ZswapConfig',
  description: 'Compressed swap in memory.',
  schema: section({ maxPoolPercent: integer, shrinkerEnabled: flag }),
  rules({ maxPoolPercent: percent = 0 }, report) {
    if (percent < 0 || percent > 100) report.error(['maxPoolPercent'], `a percentage goes from 0 to 100: ${percent}`)
  },
})
