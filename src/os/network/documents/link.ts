import { CelError } from '../../../document/cel/error.ts'
import { described, expression, section, text } from '../../../document/fields.ts'
import { defineDocument, type Reporter } from '../../../document/kind.ts'
import { linkCondition } from './link-expression.ts'
import { linkFields, linkRules, requireName } from './link-fields.ts'

/** Configures an existing link. */
export const LinkConfig = defineDocument({
  kind: 'LinkConfig',
  description: 'Addresses, routes and state of an existing link.',
  nameKey: 'name',
  schema: section({ name: described(text, 'The unique name of this document among those of its kind.'), ...linkFields }),
  rules: linkRules,
})

/** Configures an alias for the links that an expression selects. */
export const LinkAliasConfig = defineDocument({
  kind: 'LinkAliasConfig',
  description: 'An alias for the links that an expression selects.',
  nameKey: 'name',
  schema: section({
    name: described(text, 'The unique name of this document among those of its kind.'),
    selector: described(
      section({ match: described(expression, 'An expression over links that is true for the right one.') }),
      'Which link.',
    ),
  }),
  rules({ name, selector }, report) {
    requireName(name, report)
    if (name?.includes('%') && !/^[^%]+%d$/.test(name)) {
      report.error(['name'], `${JSON.stringify(name)} is not a pattern: it has to end with "%d" after at least one character`)
    }
    if (!selector?.match) report.error(['selector', 'match'], 'an expression that selects the link is required')
    else expressionRule(selector.match, report)
  },
})

function expressionRule(match: string, report: Reporter): void {
  try {
    linkCondition(match)
  } catch (error) {
    if (!(error instanceof CelError)) throw error
    report.error(['selector', 'match'], error.message)
  }
}
