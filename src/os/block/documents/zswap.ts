import { described, flag, integer, section } from '../../../document/fields.ts'
import { defineDocument } from '../../../document/kind.ts'

/** Configures zswap. */
export const ZswapConfig = defineDocument({
  kind: 'ZswapConfig',
  description: 'Zswap: a compressed swap cache in memory.',
  schema: section({
    maxPoolPercent: described(integer, 'The most memory it takes, in percent.'),
    shrinkerEnabled: described(flag, 'Gives memory back when it is short.'),
  }),
  rules({ maxPoolPercent: percent = 0 }, report) {
    if (percent < 0 || percent > 100) report.error(['maxPoolPercent'], `a percentage must be from 0 to 100: ${percent}`)
  },
})
